// D[b,m,n] = out(act(alpha gA gB sum_k A[b,m,k] B[b,n,k] + bias[b,n]) + beta C[b,m,n])      (docs/products.md)
//
// Every format, layout, stride, epilogue and shape. One output after the other: dot.h forms the sums, finish.h the value,
// output.h stores it.
#include "backends/reference/gemm_reference.h"

#include "backends/float_environment.h"
#include "backends/reference/dot.h"
#include "backends/reference/output.h"

namespace finescale::reference {

Accumulation gemm_adds(const GemmProblem&) { return kSequentialSum; }

Choice gemm_configure(const GemmProblem& problem, const DeviceInfo&) { return {.scratch_bytes = output_scratch_bytes(problem.d)}; }

Status gemm_run(const GemmProblem& problem, const Choice&, const Execution& execution) {
  const FloatEnvironment environment;
  const auto value = [&](std::int64_t batch, std::int64_t row, std::int64_t col) {
    const Sums sums = output_sums(problem, {batch, row, row}, batch, col);
    return finish_value(problem, {batch, row, col, batch, row, batch}, sums.acc, sums.acc_up);
  };
  const auto scale_row = [](std::int64_t, std::int64_t row) { return row; };
  zero_scale_tiles(problem.d, problem.d.scale_rows());
  write_output(problem.d, problem.recipe, reinterpret_cast<float*>(execution.workspace.scratch), value, scale_row);
  return {};
}

}  // namespace finescale::reference
