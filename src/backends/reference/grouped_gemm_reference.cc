// D[i] = epilogue(A[gather[i]] * B[group(i)]^T); rows of no group are zeros      (docs/products.md)
// summed: D[t] = out(sum over grouped rows i with gather[i] = t, ascending, of weight[i] * act(...))
//
// Routing is read through routing.h only; dispatch has checked its values.
#include "backends/reference/grouped_gemm_reference.h"

#include "backends/float_environment.h"
#include "backends/reference/dot.h"
#include "backends/reference/output.h"

#include <finescale/routing.h>

namespace finescale::reference {
namespace {

OperandRow row_of_a(const GroupedGemmProblem& problem, const GroupedRow& at) {
  return {at.a_batch, at.a_row, scale_row_of(problem, problem.gemm.a, at.group, at.a_row)};
}

OutputIndex output_index(const GroupedRow& at, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return {batch, row, col, at.a_batch, at.a_row, at.group};
}

// The grouped row that is written to a row of D, where nothing is summed.
GroupedRow written_to(const GroupedGemmProblem& problem, std::int64_t batch, std::int64_t row) {
  return grouped_row(problem, batch * problem.gemm.d.rows + row);
}

float routed_value(const GroupedGemmProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const GroupedRow at = written_to(problem, batch, row);
  if (at.group < 0) return 0.0f;
  const Sums sums = output_sums(problem.gemm, row_of_a(problem, at), at.group, col);
  return finish_value(problem.gemm, output_index(at, batch, row, col), sums.acc, sums.acc_up);
}

float summed_value(const GroupedGemmProblem& problem, std::int64_t token, std::int64_t col) {
  float total = 0.0f;
  for (std::int64_t i = 0; i < grouped_rows(problem); ++i) {
    if (problem.routing.gather[i] != token) continue;
    const GroupedRow at = grouped_row(problem, i);
    if (at.group < 0) continue;
    const Sums sums = output_sums(problem.gemm, row_of_a(problem, at), at.group, col);
    total += weight_of(problem.routing, i) * finish_activation(problem.gemm, output_index(at, 0, token, col), sums.acc, sums.acc_up);
  }
  return total;
}

// D's block scales under scale_128x4_per_group: those of a row of no group have no place.
std::int64_t scale_row_of_output(const GroupedGemmProblem& problem, std::int64_t batch, std::int64_t row) {
  if (problem.gemm.d.scale_layout != ScaleLayout::scale_128x4_per_group) return row;
  const std::int64_t group = written_to(problem, batch, row).group;
  return group < 0 ? -1 : scale_row_of(problem, problem.gemm.d, group, row);
}

std::int64_t scale_tile_rows(const GroupedGemmProblem& problem) {
  const MutableMatrix& d = problem.gemm.d;
  return d.scale_layout == ScaleLayout::scale_128x4_per_group ? padded_group_start(problem.routing, groups_of(problem)) : d.scale_rows();
}

}  // namespace

Accumulation grouped_gemm_adds(const GroupedGemmProblem&) { return kSequentialSum; }

Choice grouped_gemm_configure(const GroupedGemmProblem& problem, const DeviceInfo&) {
  return {.scratch_bytes = output_scratch_bytes(problem.gemm.d)};
}

Status grouped_gemm_run(const GroupedGemmProblem& problem, const Choice&, const Execution& execution) {
  const FloatEnvironment environment;
  const auto value = [&](std::int64_t batch, std::int64_t row, std::int64_t col) {
    return is_summed(problem.routing) ? summed_value(problem, row, col) : routed_value(problem, batch, row, col);
  };
  const auto scale_row = [&](std::int64_t batch, std::int64_t row) { return scale_row_of_output(problem, batch, row); };
  zero_scale_tiles(problem.gemm.d, scale_tile_rows(problem));
  write_output(problem.gemm.d, problem.gemm.recipe, reinterpret_cast<float*>(execution.workspace.scratch), value, scale_row);
  return {};
}

}  // namespace finescale::reference
