// The same codes and block scales in another layout: codes a byte a thread, scales one a thread, padding as zeros.
#include "backends/cuda/device/codes.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

#include <finescale/access.h>

namespace finescale::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) repack_codes(const __grid_constant__ RepackProblem problem, std::int64_t items) {
#pragma unroll 1
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const Position at = position_of(item, problem.to.rows, units_per_row(problem.to));
    store_unit(problem.to, at.batch, at.row, at.col, [&](std::int64_t col) { return code_at(problem.from, at.batch, at.row, col); });
  }
}

__global__ void __launch_bounds__(kThreads) repack_scales(const __grid_constant__ RepackProblem problem, std::int64_t items) {
  const MutableMatrix& to = problem.to;
  const ScaleExtent extent = padded_scale_extent(to);
#pragma unroll 1
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const Position at = position_of(item, extent.rows, extent.cols);
    const std::int64_t row = at.row * to.format.block_rows, col = at.col * to.format.block_cols;
    const bool real = row < to.rows && col < to.cols;
    set_scale_code(to, at.batch, row, col, real ? scale_code_at(problem.from, at.batch, row, col) : 0u);
  }
}

}  // namespace

Status repack_generic(const RepackProblem& problem, const Choice&, const Execution& execution) {
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  const MutableMatrix& to = problem.to;
  if (const std::int64_t items = to.batch * to.rows * units_per_row(to); items != 0) {
    FINESCALE_TRY(
        launch("repack_any_any_generic", repack_codes, grid_for(items, kThreads), kThreads, stream_of(execution), problem, items));
  }
  const ScaleExtent extent = padded_scale_extent(to);
  const std::int64_t items = to.batch * extent.rows * extent.cols;
  if (items == 0) return {};
  return launch("repack_any_any_generic", repack_scales, grid_for(items, kThreads), kThreads, stream_of(execution), problem, items);
}

}  // namespace finescale::cuda
