#include "backends/cpu/quantize_driver.h"

#include "backends/cpu/machine.h"
#include "backends/cpu/output_run.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/quantize_blocks.h"
#include "backends/padding.h"
#include "backends/quantize_rules.h"

#include <finescale/formats/block_quantizer.h>
#include <finescale/producer.h>

#include <algorithm>
#include <atomic>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kTaskRows = 4;

// Bits of an amax, joined by tasks in any order: of non-negative floats and of NaN the largest bits are the largest value, so
// the order changes nothing. to.global itself holds them until the pass is over.
void join_amax(float& joined, float amax) {
  std::atomic_ref<float> cell(joined);
  float seen = cell.load(std::memory_order_relaxed);
  while (float_bits(amax) > float_bits(seen) && !cell.compare_exchange_weak(seen, amax, std::memory_order_relaxed)) {
  }
}

// Bits of the largest finite magnitude among the values and `amax`; plain integers, so that the compiler vectorizes.
std::int32_t finite_amax(std::int32_t amax, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(float_bits(values[i]) & 0x7FFFFFFFu);
    const std::int32_t finite = magnitude < 0x7F800000 ? magnitude : 0;
    amax = finite > amax ? finite : amax;
  }
  return amax;
}

// Of one row: the largest finite magnitude. Where a global scale must show an element that is not finite, NaN for such a row.
float row_amax(BlockSource& source, std::int64_t batch, std::int64_t row) {
  const MutableMatrix& to = source.problem().to;
  const bool shows = is_nan(global_scale(to.format, 0.0f, false));
  std::int32_t amax = 0;
  float buffer[kSourceCols];
  for (std::int64_t col = 0; col < to.cols; col += kSourceCols) {
    const std::int64_t count = std::min(kSourceCols, to.cols - col);
    const float* values = source.run(batch, row, col, count, buffer);
    amax = finite_amax(amax, values, count);
    if (shows && !std::all_of(values, values + count, is_finite)) return bits_float(0x7FC00000u);
  }
  return bits_float(static_cast<std::uint32_t>(amax));
}

// The first row of the segment that holds `row`, and the row after its last. Without segments each row is its own.
struct Segment {
  std::int64_t begin, end;
};
Segment segment_of(const RowSegments& segments, std::int64_t row) {
  if (segments.count == 0) return {row, row + 1};
  const std::int32_t* end = std::upper_bound(segments.ends, segments.ends + segments.count, row);
  return {end == segments.ends ? 0 : end[-1], *end};
}

// Where in to.global the amax of a row is joined.
std::int64_t global_index(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row) {
  switch (problem.to.global_kind) {
    case GlobalScale::per_batch: return batch;
    case GlobalScale::per_row: return batch * problem.to.rows + segment_of(problem.segments, row).begin;
    default: return 0;
  }
}

void write_globals(const Leaves& leaves, const QuantizeProblem& problem, const Execution& execution) {
  const MutableMatrix& to = problem.to;
  std::fill_n(to.global, global_count(to), 0.0f);
  parallel_ranges(execution, to.batch * to.rows, kTaskRows, [&](std::int64_t begin, std::int64_t end) {
    BlockSource source(leaves, problem);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t batch = i / to.rows, row = i % to.rows;
      join_amax(to.global[global_index(problem, batch, row)], row_amax(source, batch, row));
    }
  });
  const auto scale = [&](float joined) { return is_nan(joined) ? joined : global_scale(to.format, joined); };
  if (to.global_kind != GlobalScale::per_row) {
    for (std::int64_t i = 0; i < global_count(to); ++i) to.global[i] = scale(to.global[i]);
    return;
  }
  for (std::int64_t b = 0; b < to.batch; ++b) {
    for (std::int64_t row = 0; row < to.rows;) {
      const Segment segment = segment_of(problem.segments, row);
      const float g = scale(to.global[b * to.rows + row]);
      for (; row < segment.end; ++row) to.global[b * to.rows + row] = g;
    }
  }
}

void add_residuals(const QuantizeProblem& problem, const Execution& execution) {
  parallel_for(execution, problem.to.batch * problem.to.rows, [&](std::int64_t i) {
    for (std::int64_t col = 0; col < problem.to.cols; ++col) add_residual(problem, i / problem.to.rows, i % problem.to.rows, col);
  });
}

void quantize_all_blocks(const Leaves& leaves, const QuantizeProblem& problem, const Execution& execution) {
  const MutableMatrix& to = problem.to;
  const std::int64_t block_rows = to.format.block_rows, bands = ceil_div(to.rows, block_rows);
  // Rows are cut into pieces too, but where a piece would have to form its row's factor again.
  const bool whole = problem.producer.kind == Producer::rms_norm;
  const std::int64_t cols = round_up(whole ? to.cols : kSourceCols, to.format.block_cols), pieces = ceil_div(to.cols, cols);
  // Several rows a task where rows are short.
  const std::int64_t grain = std::max<std::int64_t>(1, kTaskRows * kSourceCols / std::max<std::int64_t>(to.cols * block_rows, 1));
  parallel_ranges(execution, to.batch * bands * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    BlockSource source(leaves, problem);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t band = i / pieces, row = band % bands * block_rows, col = i % pieces * cols;
      quantize_piece(source, {band / bands, row, std::min(block_rows, to.rows - row), row}, col, std::min(cols, to.cols - col));
    }
  });
}

}  // namespace

Refusal quantize_supports(const QuantizeProblem& problem, const DeviceInfo&) {
  if (problem.recipe.profile != Profile::finescale) {
    return {"profile: the reference quantizes every other one", static_cast<std::int64_t>(problem.recipe.profile), 0};
  }
  if (problem.to.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return {"scale_128x4_per_group needs a routing, which quantize has none of"};
  }
  return recipe_refusal(problem);
}

Refusal quantize_nvfp4_supports(const QuantizeProblem& problem, const DeviceInfo& device) {
  if (const Refusal refusal = quantize_supports(problem, device)) return refusal;
  if (!may_search(problem.to.format)) return {"to.format: blocks of 1 x 16 E2M1 with E4M3 scales"};
  if (problem.recipe.search != ScaleSearch::max) return {"recipe.search", static_cast<std::int64_t>(problem.recipe.search), 0};
  if (problem.recipe.rounding != Rounding::nearest_even) return {"recipe.rounding", static_cast<std::int64_t>(problem.recipe.rounding), 0};
  if (problem.to.codes != CodeLayout::row_major) return {"to.codes must be row_major", static_cast<std::int64_t>(problem.to.codes), 0};
  return {};
}

Status quantize_run(const Leaves& leaves, const QuantizeProblem& problem, const Execution& execution) {
  const IeeeMode mode;
  const MutableMatrix& to = problem.to;
  if (problem.producer.kind == Producer::rms_norm && !problem.producer.residual.absent()) add_residuals(problem, execution);
  if (!problem.global_given && to.global_kind != GlobalScale::none) write_globals(leaves, problem, execution);
  zero_scale_tiles(to, to.scale_rows());
  if (to.rows != 0 && to.cols != 0) quantize_all_blocks(leaves, problem, execution);
  return {};
}

}  // namespace finescale::cpu
