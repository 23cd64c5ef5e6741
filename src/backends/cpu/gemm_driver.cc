#include "backends/cpu/gemm_driver.h"

#include "backends/cpu/finish_rows.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/output_run.h"
#include "backends/cpu/row_reader.h"
#include "backends/padding.h"

namespace finescale::cpu {
namespace {

// Fills the strip with the rows from the cursor on.
void fill_strip(const GemmProblem& problem, StripCursor& cursor, Strip& strip) {
  strip.row_count = strip.segment_count = 0;
  while (cursor.batch < problem.d.batch) {
    const std::int64_t b = cursor.batch, first = cursor.row;
    const std::int64_t count = take_rows(strip, problem.d.rows, problem.d.format.block_rows, cursor);
    if (count == 0) return;
    append_segments(strip, strip.row_count, count, b);
    for (std::int64_t m = first; m < first + count; ++m) {
      const std::int64_t place = strip.row_count++;
      strip.rows[place] = {b, m, m, b, b, m, m};
      strip.slot[place] = strip.source[place] = static_cast<std::int32_t>(place);
    }
  }
}

}  // namespace

Choice gemm_configure(const GemmProblem& problem, const DeviceInfo&) {
  return {.scratch_bytes = strip_bytes(strip_shape(problem, problem.d.batch * problem.d.rows))};
}

Status gemm_run(const Leaves& leaves, Method method, const GemmProblem& problem, const Execution& execution) {
  const IeeeMode mode;
  zero_scale_tiles(problem.d, problem.d.scale_rows());
  if (problem.d.rows == 0 || problem.d.cols == 0) return {};
  Strip strip = make_strip(strip_shape(problem, problem.d.batch * problem.d.rows), execution.workspace.scratch);
  for (StripCursor cursor; cursor.batch < problem.d.batch;) {
    fill_strip(problem, cursor, strip);
    multiply_strip(leaves, method, problem, strip, execution);
    finish_strip(leaves, problem, strip, execution);
  }
  return {};
}

Refusal gemv_supports(const GemmProblem& problem, const DeviceInfo&) {
  if (!is_panel(problem.b)) return {"B must be prepared as panel16_v1, in a format whose blocks are multiples of 8 columns"};
  if (problem.epilogue.gate == Gate::second_matrix && !is_panel(problem.b2)) return {"b2 must be prepared as panel16_v1"};
  if (problem.batch_invariant) return {"batch_invariant: the order of sums is not that of larger M"};
  return {};
}

Refusal gemv_suits(const GemmProblem& problem, const DeviceInfo&) {
  // Above it the decoded panel of the tile kernel is used often enough to pay (docs/kernels/cpu_gemm.md).
  if (problem.a.rows > 2 * kGemvRows) return {"rows of A", problem.a.rows, 2 * kGemvRows};
  return {};
}

}  // namespace finescale::cpu
