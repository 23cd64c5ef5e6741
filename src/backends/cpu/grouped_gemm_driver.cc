// D[i] = epilogue(A[gather[i]] * B[group(i)]^T); rows of no group are zeros      (docs/products.md)
// summed: D[t] = out(sum over grouped rows i with gather[i] = t, ascending, of weight[i] * act(...))
#include "backends/cpu/grouped_gemm_driver.h"

#include "backends/cpu/finish_rows.h"
#include "backends/cpu/gemm_driver.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/output_run.h"
#include "backends/cpu/parallel.h"
#include "backends/padding.h"

#include <finescale/routing.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kSumCols = 128;  // columns of a task that adds weighted rows

StripShape shape_of(const GroupedGemmProblem& problem) { return strip_shape(problem.gemm, grouped_rows(problem)); }

StripRow strip_row(const GroupedGemmProblem& problem, std::int64_t i) {
  const GroupedRow at = grouped_row(problem, i);
  StripRow row{at.a_batch, at.a_row, at.a_row, at.group, at.d_batch, at.d_row, at.d_row};
  if (at.group >= 0) row.a_scale_row = scale_row_of(problem, problem.gemm.a, at.group, at.a_row);
  if (problem.gemm.d.scale_layout == ScaleLayout::scale_128x4_per_group) {
    row.d_scale_row = at.group < 0 ? -1 : scale_row_of(problem, problem.gemm.d, at.group, at.d_row);
  }
  return row;
}

// Orders the strip's rows by group, rows of a group ascending, and makes a segment or more of each group.
void sort_by_group(Strip& strip) {
  std::int64_t placed = 0;
  for (std::int64_t i = 0; i < strip.row_count; ++i) {
    strip.slot[i] = -1;
    if (strip.rows[i].group >= 0) strip.source[placed++] = static_cast<std::int32_t>(i);
  }
  const auto group = [&](std::int64_t place) { return strip.rows[strip.source[place]].group; };
  std::sort(strip.source, strip.source + placed, [&](std::int32_t a, std::int32_t b) {
    return strip.rows[a].group != strip.rows[b].group ? strip.rows[a].group < strip.rows[b].group : a < b;
  });
  for (std::int64_t begin = 0, end = 0; begin < placed; begin = end) {
    while (end < placed && group(end) == group(begin)) ++end;
    append_segments(strip, begin, end - begin, group(begin));
  }
  for (std::int64_t place = 0; place < placed; ++place) strip.slot[strip.source[place]] = static_cast<std::int32_t>(place);
}

// Grouped rows from the cursor on; returns the first of them.
std::int64_t fill_strip(const GroupedGemmProblem& problem, std::int64_t batches, std::int64_t batch_rows, StripCursor& cursor,
                        Strip& strip) {
  const std::int64_t first = cursor.batch * batch_rows + cursor.row;
  const std::int64_t block_rows = is_summed(problem.routing) ? 1 : problem.gemm.d.format.block_rows;
  strip.row_count = strip.segment_count = 0;
  while (cursor.batch < batches) {
    const std::int64_t count = take_rows(strip, batch_rows, block_rows, cursor);
    if (count == 0) break;
    for (std::int64_t end = strip.row_count + count; strip.row_count < end; ++strip.row_count) {
      strip.rows[strip.row_count] = strip_row(problem, first + strip.row_count);
    }
  }
  sort_by_group(strip);
  return first;
}

// Adds the strip's rows to the totals of their tokens, ascending; tasks share columns, so no two add to one total.
void add_weighted(const Leaves& leaves, const GroupedGemmProblem& problem, const Strip& strip, std::int64_t first_row, float* totals,
                  const Execution& execution) {
  const std::int64_t cols = problem.gemm.d.cols;
  parallel_ranges(execution, cols, kSumCols, [&](std::int64_t begin, std::int64_t end) {
    float values[kSumCols];
    for (std::int64_t i = 0; i < strip.row_count; ++i) {
      if (strip.slot[i] < 0) continue;
      activated_values(leaves, problem.gemm, strip, i, begin, end - begin, values);
      const float weight = weight_of(problem.routing, first_row + i);
      float* total = totals + problem.routing.gather[first_row + i] * cols;
      for (std::int64_t n = begin; n < end; ++n) total[n] += weight * values[n - begin];
    }
  });
}

std::int64_t totals_count(const GroupedGemmProblem& problem) {
  return is_summed(problem.routing) ? problem.gemm.d.rows * problem.gemm.d.cols : 0;
}

void run_summed(const Leaves& leaves, Method method, const GroupedGemmProblem& problem, Strip& strip, float* totals,
                const Execution& execution) {
  std::memset(totals, 0, static_cast<std::size_t>(totals_count(problem)) * sizeof(float));
  for (StripCursor cursor; cursor.batch < 1;) {
    const std::int64_t first = fill_strip(problem, 1, grouped_rows(problem), cursor, strip);
    multiply_strip(leaves, method, problem.gemm, strip, execution);
    add_weighted(leaves, problem, strip, first, totals, execution);
  }
  store_values(problem.gemm, totals, execution);
}

}  // namespace

Choice grouped_gemm_configure(const GroupedGemmProblem& problem, const DeviceInfo&) {
  return {.scratch_bytes = strip_bytes(shape_of(problem)) + round_up(totals_count(problem) * 4, 64)};
}

Status grouped_gemm_run(const Leaves& leaves, Method method, const GroupedGemmProblem& problem, const Execution& execution) {
  const IeeeMode mode;
  const MutableMatrix& d = problem.gemm.d;
  const bool per_group = d.scale_layout == ScaleLayout::scale_128x4_per_group;
  zero_scale_tiles(d, per_group ? padded_group_start(problem.routing, groups_of(problem)) : d.scale_rows());
  if (d.batch == 0 || d.rows == 0 || d.cols == 0) return {};
  const StripShape shape = shape_of(problem);
  Strip strip = make_strip(shape, execution.workspace.scratch);
  if (is_summed(problem.routing)) {
    run_summed(leaves, method, problem, strip, reinterpret_cast<float*>(execution.workspace.scratch + strip_bytes(shape)), execution);
    return {};
  }
  for (StripCursor cursor; cursor.batch < d.batch;) {
    fill_strip(problem, d.batch, d.rows, cursor, strip);
    multiply_strip(leaves, method, problem.gemm, strip, execution);
    finish_strip(leaves, problem.gemm, strip, execution);
  }
  return {};
}

Refusal grouped_gemv_supports(const GroupedGemmProblem& problem, const DeviceInfo& device) { return gemv_supports(problem.gemm, device); }

Refusal grouped_gemv_suits(const GroupedGemmProblem& problem, const DeviceInfo&) {
  const std::int64_t rows = problem.routing.expected_rows != 0 ? problem.routing.expected_rows : grouped_rows(problem);
  const std::int64_t most = 2 * kGemvRows * std::max<std::int64_t>(groups_of(problem), 1);
  if (rows > most) return {"rows of all groups", rows, most};
  return {};
}

}  // namespace finescale::cpu
