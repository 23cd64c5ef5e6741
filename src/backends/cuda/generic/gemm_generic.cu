// D[b,m,n] = out(act(alpha gA gB sum_k A[b,m,k] B[b,n,k] + bias[b,n]) + beta C[b,m,n])      (docs/products.md)
//
// Every problem of the contract: any pair of formats, any layout, batch, epilogue and output. A CTA forms one tile of outputs
// on the FP32 units (device/multiply_tile.h) and finishes it from registers. A block-format D goes through FP32 scratch and is
// quantized from there.
#include "backends/cuda/device/multiply_tile.h"
#include "backends/cuda/generic/output_generic.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

#include <finescale/finish.h>

#include <algorithm>

namespace finescale::cuda {
namespace {

using WideTile = SharedTile<64, 64>;
using NarrowTile = SharedTile<16, 64>;  // few rows: less of the tile is empty

// values: batch x M x N FP32, where D is a block format; else null.
template <class Tile>
__global__ void __launch_bounds__(kTileThreads) gemm_tiles(const __grid_constant__ GemmProblem problem, float* values, std::int64_t tiles) {
  __shared__ Tile shared;
  const std::int64_t rows = problem.d.rows, cols = problem.d.cols;
  const std::int64_t row_tiles = ceil_div(rows, Tile::kRows), col_tiles = ceil_div(cols, Tile::kCols);
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t batch = tile / (row_tiles * col_tiles);
    const std::int64_t first_row = tile / col_tiles % row_tiles * Tile::kRows, first_col = tile % col_tiles * Tile::kCols;
    if (const int r = static_cast<int>(threadIdx.x); r < Tile::kRows) {
      const std::int64_t row = first_row + r < rows ? first_row + r : -1;
      shared.a.rows[r] = RowAddress{batch, row, row};
    }
    multiply_outputs(shared, problem, batch, first_col);
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < Tile::kRows * Tile::kCols; item += kTileThreads) {
      const int r = item / Tile::kCols, c = item % Tile::kCols;
      const std::int64_t row = first_row + r, col = first_col + c;
      if (row >= rows || col >= cols) continue;
      const float value = finish_value(problem, {batch, row, col, batch, row, batch}, shared.acc[r][c], shared.acc_up[r][c]);
      store_output(problem.d, values, batch, row, col, value);
    }
    __syncthreads();  // the sums are read: the next tile may overwrite them
  }
}

template <class Tile>
Status launch_tiles(const GemmProblem& problem, float* values, cudaStream_t stream) {
  const MutableMatrix& d = problem.d;
  const std::int64_t tiles = d.batch * ceil_div(d.rows, Tile::kRows) * ceil_div(d.cols, Tile::kCols);
  return launch("gemm_any_any_any_generic", gemm_tiles<Tile>, grid_for(tiles, 1), kTileThreads, stream, problem, values, tiles);
}

}  // namespace

Choice configure_gemm_generic(const GemmProblem& problem, const DeviceInfo&) { return {.scratch_bytes = output_values_bytes(problem.d)}; }

Status gemm_generic(const GemmProblem& problem, const Choice&, const Execution& execution) {
  if (problem.d.batch * problem.d.rows * problem.d.cols == 0) return {};
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  const cudaStream_t stream = stream_of(execution);
  float* values = problem.d.format.is_plain() ? nullptr : reinterpret_cast<float*>(execution.workspace.scratch);
  FINESCALE_TRY(problem.d.rows <= NarrowTile::kRows ? launch_tiles<NarrowTile>(problem, values, stream)
                                                    : launch_tiles<WideTile>(problem, values, stream));
  return values == nullptr ? Status{} : quantize_output(problem.d, values, nullptr, stream);
}

}  // namespace finescale::cuda
