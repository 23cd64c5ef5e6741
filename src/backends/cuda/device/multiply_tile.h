// A tile of products on the FP32 units, for operands of any format and layout.
//
//   sum[r][c] = fma(a[r][k] sa, b[c][k] sb, sum[r][c]) for k = 0, 1, 2 ...      (kOrderAscendingFma)
//
// The order of an output's sum does not depend on the tile, so every output has the same bits whatever rows stand beside it.
// Slabs of kDepth columns are decoded into shared memory by all threads; thread (y, x) of 16 x 16 then owns the outputs
// (y + 16 i, x + 16 j) of the tile. The sums are left in shared memory, where any thread may finish any output.
#pragma once

#include <finescale/access.h>
#include <finescale/gemm.h>

#include <cstdint>

namespace finescale::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kTileSide = 16;  // threads along either side
inline constexpr int kTileDepth = 16;
inline constexpr int kRun = 8;  // neighbours along K that one thread decodes at once

// A row to read; scale_row is what its block scales are addressed by (access.h). row < 0: no row, read as zeros.
struct RowAddress {
  std::int64_t batch, row, scale_row;
};

// One operand of a slab: kLines rows by kTileDepth columns, column-major; the pitch of kLines + 1 spreads the banks.
template <int kLines>
struct OperandSlab {
  RowAddress rows[kLines];
  float value[kTileDepth * (kLines + 1)];
};

template <int kTileRows, int kTileCols>
struct SharedTile {
  static constexpr int kRows = kTileRows, kCols = kTileCols;

  OperandSlab<kRows> a;
  OperandSlab<kCols> b;
  float acc[kRows][kCols], acc_up[kRows][kCols];
};

// Decodes columns k0 .. k0 + kTileDepth - 1 of `lines` rows: value[k * (lines + 1) + line] = fp32(element * block scale).
static __device__ __noinline__ void load_slab(float* value, const RowAddress* rows, int lines, const Matrix& matrix, std::int64_t k0) {
  constexpr int kRuns = kTileDepth / kRun;
  const bool one_scale = !matrix.format.has_scales() || matrix.format.block_cols % kRun == 0;
  for (int item = static_cast<int>(threadIdx.x); item < lines * kRuns; item += kTileThreads) {
    const int line = item / kRuns, first = item % kRuns * kRun;
    const RowAddress at = rows[line];
    float scale = 1.0f;
    for (int k = first; k < first + kRun; ++k) {
      const std::int64_t col = k0 + k;
      const bool real = at.row >= 0 && col < matrix.cols;
      if (real && (k == first || !one_scale)) scale = block_scale_at(matrix, at.batch, at.scale_row, col);
      value[k * (lines + 1) + line] = real ? element_at(matrix, at.batch, at.row, col) * scale : 0.0f;
    }
  }
}

// sum = the products of all rows of the two slabs. All threads of the CTA; the slabs' rows are set and visible.
template <int kRows, int kCols>
__device__ void multiply_tile(OperandSlab<kRows>& slab_a, const Matrix& a, OperandSlab<kCols>& slab_b, const Matrix& b,
                              float (&sum)[kRows][kCols]) {
  constexpr int kRowsPerThread = kRows / kTileSide, kColsPerThread = kCols / kTileSide;
  const int y = static_cast<int>(threadIdx.x) / kTileSide, x = static_cast<int>(threadIdx.x) % kTileSide;
  float own[kRowsPerThread][kColsPerThread] = {};
  for (std::int64_t k0 = 0; k0 < a.cols; k0 += kTileDepth) {
    load_slab(slab_a.value, slab_a.rows, kRows, a, k0);
    load_slab(slab_b.value, slab_b.rows, kCols, b, k0);
    __syncthreads();  // the slabs are complete
#pragma unroll
    for (int k = 0; k < kTileDepth; ++k) {
      for (int i = 0; i < kRowsPerThread; ++i) {
        for (int j = 0; j < kColsPerThread; ++j) {
          own[i][j] =
              __fmaf_rn(slab_a.value[k * (kRows + 1) + y + kTileSide * i], slab_b.value[k * (kCols + 1) + x + kTileSide * j], own[i][j]);
        }
      }
    }
    __syncthreads();  // nobody reads the slabs any more: the next ones may overwrite them
  }
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < kColsPerThread; ++j) sum[y + kTileSide * i][x + kTileSide * j] = own[i][j];
  }
}

// The sums behind a tile of outputs, gate (or the only one) and up, columns first_col .. of D. tile.a.rows is set by the
// caller and visible; b_batch is the batch (or group) of B. Afterwards tile.acc and tile.acc_up are visible to all threads.
template <int kRows, int kCols>
__device__ void multiply_outputs(SharedTile<kRows, kCols>& tile, const GemmProblem& problem, std::int64_t b_batch, std::int64_t first_col) {
  const std::int64_t columns = problem.d.cols;
  const Gate gate = problem.epilogue.gate;
  for (int half = 0; half < (gate == Gate::none ? 1 : 2); ++half) {
    const bool second = half == 1 && gate == Gate::second_matrix;
    for (int c = static_cast<int>(threadIdx.x); c < kCols; c += kTileThreads) {
      const std::int64_t col = first_col + c;
      const std::int64_t row = col >= columns ? -1 : second ? col : half == 0 ? gate_row(gate, col, columns) : up_row(gate, col, columns);
      tile.b.rows[c] = {b_batch, row, row};
    }
    __syncthreads();  // the rows of B are set
    multiply_tile(tile.a, problem.a, tile.b, second ? problem.b2 : problem.b, half == 0 ? tile.acc : tile.acc_up);
  }
  __syncthreads();  // the sums are complete
}

}  // namespace finescale::cuda
