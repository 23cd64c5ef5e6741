// Work by index: a grid of any size covers any number of items, each item belongs to one thread (or one warp) of it.
//
//   for (std::int64_t item = first_item(); item < items; item += item_step()) ...
#pragma once

#include <cstdint>

namespace finescale::cuda {

__device__ inline std::int64_t first_item() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t item_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

// The same, a warp an item. CTAs hold whole warps.
inline constexpr int kWarp = 32;
__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline std::int64_t first_warp_item() { return first_item() / kWarp; }
__device__ inline std::int64_t warp_item_step() { return item_step() / kWarp; }

struct Position {
  std::int64_t batch, row, col;
};

// The position of an item in row-major order over batches of rows x cols.
__device__ inline Position position_of(std::int64_t item, std::int64_t rows, std::int64_t cols) {
  const std::int64_t line = item / cols;
  return {line / rows, line % rows, item % cols};
}

}  // namespace finescale::cuda
