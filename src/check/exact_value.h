// The exact value of one output of a product before its rounding, with the FP32 error that a right kernel may show there.
#pragma once

#include "check/enclosure.h"
#include "check/fixed_point.h"
#include "check/operand_row.h"

#include <finescale/finish.h>
#include <finescale/gemm.h>
#include <finescale/kernel.h>

namespace finescale {

struct ExactValue {
  Enclosure value;        // finite: holds the exact value
  long double error = 0;  // E: |FP32 value of a right kernel - exact|
  bool finite = true;
  long double special = 0;    // not finite: NaN, Inf or -Inf
  bool may_overflow = false;  // an FP32 intermediate may leave the range: any NaN or Inf is right too
  bool exact = true;          // `point` is the value itself
  FixedPoint point;
};

// Forms outputs of one problem, whose strides are filled in. Rows are decoded once while the cache holds them.
class Evaluator {
 public:
  // `rows`: how many decoded rows of A and of B are kept.
  Evaluator(const GemmProblem& problem, const Accumulation& accumulation, std::int64_t rows);

  // act(z), gated act(z_gate) * z_up: as finish_activation. `a_scale_row`: see decode_row.
  ExactValue activation(const OutputIndex& at, std::int64_t a_scale_row);
  // With the residual: as finish_value.
  ExactValue output(const OutputIndex& at, std::int64_t a_scale_row);
  double factor() const { return factor_; }  // c

 private:
  ExactValue linear(const OutputIndex& at, std::int64_t a_scale_row, bool second, std::int64_t b_row, std::int64_t bias_col);

  GemmProblem problem_;
  double factor_;
  RowCache a_rows_, b_rows_;
};

// sum += weight * term, one product and one addition in FP32.
void add_weighted(ExactValue& sum, const ExactValue& term, float weight);

}  // namespace finescale
