// Weights into a prepared layout, through its map (row, k) -> code and scale: right for every layout of the list.
//
// The buffer is zeroed, then each code is or-ed into its place: which codes share a byte is the layout's affair, so no thread
// owns one. A block of several rows or of several places in the layout writes its scale once for each row.
#include "backends/cuda/device/grid.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

#include <finescale/access.h>

namespace finescale::cuda {
namespace {

constexpr int kThreads = 256;

// Ors `bits` into one byte by way of the aligned word around it; the allocation holds the whole word (CUDA aligns to 256 bytes).
__device__ void or_byte(std::byte* byte, std::uint32_t bits) {
  const auto address = reinterpret_cast<std::uintptr_t>(byte);
  atomicOr(reinterpret_cast<unsigned*>(address & ~std::uintptr_t{3}), bits << (8 * (address & 3)));
}

__global__ void __launch_bounds__(kThreads) prepare_codes(const __grid_constant__ PrepareProblem problem, std::int64_t items) {
  const int width = bits(problem.to.format.element);
#pragma unroll 1
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const Position at = position_of(item, problem.to.rows, problem.to.cols);
    const std::uint32_t code = code_at(problem.from, at.batch, at.row, at.col);
    const auto place = code_place(problem.to, at.batch, at.row, at.col);  // prepared codes are low nibble first
    if (width == 4) {
      or_byte(place.base + place.index / 2, code << (4 * (place.index & 1)));
    } else {
      store_code(place.base, place.index, width, false, code);
    }
  }
}

__global__ void __launch_bounds__(kThreads) prepare_scales(const __grid_constant__ PrepareProblem problem, std::int64_t items) {
#pragma unroll 1
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const Position at = position_of(item, problem.to.rows, problem.to.scale_cols());
    const std::int64_t col = at.col * problem.to.format.block_cols;
    set_scale_code(problem.to, at.batch, at.row, col, scale_code_at(problem.from, at.batch, at.row, col));
  }
}

}  // namespace

Status prepare_generic(const PrepareProblem& problem, const Choice&, const Execution& execution) {
  const MutableMatrix& to = problem.to;
  const std::int64_t batches = to.batch_stride == 0 && to.batch != 0 ? 1 : to.batch;  // 0 broadcasts: one is stored
  const std::int64_t bytes = prepared_bytes(to) * batches, items = batches * to.rows * to.cols;
  if (bytes == 0) return {};
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  const cudaStream_t stream = stream_of(execution);
  FINESCALE_TRY(checked(cudaMemsetAsync(to.data, 0, static_cast<std::size_t>(bytes), stream), "cudaMemsetAsync"));
  if (items == 0) return {};
  FINESCALE_TRY(launch("prepare_any_any_generic", prepare_codes, grid_for(items, kThreads), kThreads, stream, problem, items));
  if (!to.format.has_scales()) return {};
  const std::int64_t scales = batches * to.rows * to.scale_cols();
  return launch("prepare_any_any_generic", prepare_scales, grid_for(scales, kThreads), kThreads, stream, problem, scales);
}

}  // namespace finescale::cuda
