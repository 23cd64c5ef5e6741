// to = cast(fp32(fp32(element * block_scale) * global))
#include "backends/cpu/conversion_drivers.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/output_run.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/row_reader.h"

#include <finescale/access.h>

#include <algorithm>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kCols = kDepth;  // columns of a run

// Block values times the global scale; a NaN has one form, so that bytes agree everywhere (dequantized_value).
void apply_global(float g, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = values[i] * g;
    values[i] = is_nan(value) ? bits_float(0x7FC00000u) : value;
  }
}

void dequantize_row(const Leaves& leaves, const DequantizeProblem& problem, std::int64_t batch, std::int64_t row) {
  const Matrix& from = problem.from;
  const float g = global_at(from, batch, row);
  float values[kCols];
  for (std::int64_t col = 0; col < from.cols; col += kCols) {
    const std::int64_t count = std::min(kCols, from.cols - col);
    read_row(leaves, from, batch, row, row, col, count, values);
    apply_global(g, count, values);
    store_run(problem.to, batch, row, col, count, values);
  }
}

// 16 rows of a prepared matrix.
void dequantize_panel(const Leaves& leaves, const DequantizeProblem& problem, std::int64_t batch, std::int64_t panel) {
  const Matrix& from = problem.from;
  alignas(64) float decoded[kDepth * kPanelRows];
  float values[kCols];
  const std::int64_t first = panel * kPanelRows, rows = std::min(kPanelRows, from.rows - first);
  for (std::int64_t col = 0; col < from.cols; col += kDepth) {
    const std::int64_t count = std::min(kDepth, from.cols - col);
    read_panel(leaves, from, batch, panel, col, count, decoded);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < count; ++k) values[k] = decoded[k * kPanelRows + r];
      apply_global(global_at(from, batch, first + r), count, values);
      store_run(problem.to, batch, first + r, col, count, values);
    }
  }
}

}  // namespace

Refusal dequantize_supports(const DequantizeProblem& problem, const DeviceInfo&) {
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return {"scale_128x4_per_group needs a routing, which dequantize has none of"};
  }
  return {};
}

Status dequantize_run(const Leaves& leaves, const DequantizeProblem& problem, const Execution& execution) {
  const Matrix& from = problem.from;
  if (is_panel(from)) {
    const std::int64_t panels = ceil_div(from.rows, kPanelRows);
    parallel_for(execution, from.batch * panels, [&](std::int64_t i) { dequantize_panel(leaves, problem, i / panels, i % panels); });
  } else {
    parallel_ranges(execution, from.batch * from.rows, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) dequantize_row(leaves, problem, i / from.rows, i % from.rows);
    });
  }
  return {};
}

}  // namespace finescale::cpu
