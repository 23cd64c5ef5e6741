// A plain or a grouped product as check walks it: the exact value of each output, and where D keeps the scale of a row.
#pragma once

#include "check/exact_value.h"

#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/kernel.h>

#include <cstdint>
#include <functional>

namespace finescale {

inline constexpr std::int64_t kNoScale = -1;

struct Product {
  GemmProblem gemm;  // strides filled in
  std::function<ExactValue(std::int64_t batch, std::int64_t row, std::int64_t col)> exact;
  // The row by which a block scale of D is addressed; kNoScale where the row has none.
  std::function<std::int64_t(std::int64_t batch, std::int64_t row)> scale_row;
  double rows_per_output = 1;  // rows of A that one output sums
};

// Decoded rows that an Evaluator keeps of A, and of B: a few MiB, and at least what one block of D needs.
std::int64_t cached_rows(const GemmProblem& problem);

// Strides must be filled in, routing be good; the evaluator must live as long as the product.
Product plain_product(const GemmProblem& problem, Evaluator& evaluator);
Product grouped_product(const GroupedGemmProblem& problem, Evaluator& evaluator);

}  // namespace finescale
