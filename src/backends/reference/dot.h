// The sum of a product, in plain loops: what every kernel's accumulator approximates.
//
//   acc = sum over k, ascending, of ((a * sa) * b) * sb      a term: one FP32 rounding a product, exponents unlimited inside
//                                                            (product_in_order); the sum: one FP32 rounding a term
#pragma once

#include "backends/summation_orders.h"

#include <finescale/finish.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>

#include <cstdint>

namespace finescale::reference {

inline constexpr Accumulation kSequentialSum{.order = kOrderAscending};

// A row of an operand; scale_row is what its block scales are addressed by (access.h).
struct OperandRow {
  std::int64_t batch, row, scale_row;
};

inline float dot(const Matrix& a, const OperandRow& of_a, const Matrix& b, const OperandRow& of_b) {
  float acc = 0.0f;
  for (std::int64_t k = 0; k < a.cols; ++k) {
    acc += product_in_order(element_at(a, of_a.batch, of_a.row, k), block_scale_at(a, of_a.batch, of_a.scale_row, k),
                            element_at(b, of_b.batch, of_b.row, k), block_scale_at(b, of_b.batch, of_b.scale_row, k));
  }
  return acc;
}

// The sums behind one output: gate (or the only one) and up.
struct Sums {
  float acc = 0.0f, acc_up = 0.0f;
};

inline Sums output_sums(const GemmProblem& problem, const OperandRow& of_a, std::int64_t b_batch, std::int64_t col) {
  const Gate gate = problem.epilogue.gate;
  const auto row_of_b = [&](const Matrix& b, std::int64_t row) { return dot(problem.a, of_a, b, {b_batch, row, row}); };
  if (gate == Gate::none) return {row_of_b(problem.b, col), 0.0f};
  const float acc = row_of_b(problem.b, gate_row(gate, col, problem.d.cols));
  if (gate == Gate::second_matrix) return {acc, row_of_b(problem.b2, col)};
  return {acc, row_of_b(problem.b, up_row(gate, col, problem.d.cols))};
}

}  // namespace finescale::reference
