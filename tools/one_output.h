// One output of a product as a product of its own, 1 x 1 x K: what a planted fault's exact effect is measured on.
#pragma once

#include "check/owned_matrix.h"

#include <finescale/check.h>
#include <finescale/grouped_gemm.h>

#include <cstdint>
#include <vector>

namespace finescale::tools {

// Where the operands of an output lie in those of the problem.
struct OutputOrigin {
  std::int64_t a_batch = 0, a_row = 0, a_scale_row = 0;
  std::int64_t b_batch = 0;                      // of B, B2 and the bias; grouped: the group
  std::int64_t d_batch = 0, d_row = 0, col = 0;  // of D and the residual
};

class OneOutput {
 public:
  // Copies the rows that the output reads. `problem` lies in host memory, with strides filled in. D becomes f32 where it has
  // a block format: the value before it is quantized.
  static Result<OneOutput> extract(const GemmProblem& problem, const OutputOrigin& origin);

  // The row copies, to plant a fault in: of A, of B (gated: the gate's row), of the up half.
  MutableMatrix a() const { return a_.view(); }
  MutableMatrix b() const { return b_.view(); }
  MutableMatrix up() const { return up_.view(); }

  Result<ExactOutput> exact(const Accumulation& accumulation) const;

 private:
  OwnedMatrix a_, b_, up_, bias_, residual_;
  GemmProblem problem_{};
};

}  // namespace finescale::tools
