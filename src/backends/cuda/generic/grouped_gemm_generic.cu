// D[i] = epilogue(A[gather[i]] * B[group(i)]^T); rows of no group are zeros                       (docs/products.md)
// summed: D[t] = out(sum over grouped rows i with gather[i] = t, ascending, of weight[i] * act(...))
//
// A CTA takes 16 neighbouring grouped rows and forms the product with each group found among them, in ascending order; a row
// keeps the one of its own group. Sorted rows need one product a tile, rows in any order at most 16. The routing is read on
// the device only. A block-format D and a weighted sum go through FP32 scratch.
//
// Bad routing: a bad id or gather entry makes its own row NaN, a bad offset or count every row; neither is followed.
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/multiply_tile.h"
#include "backends/cuda/generic/output_generic.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

#include <finescale/finish.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/routing.h>

#include <algorithm>

namespace finescale::cuda {
namespace {

constexpr const char* kName = "grouped_gemm_any_any_any_generic";
constexpr std::int64_t kNoRow = -3;  // a row of the tile past the last grouped row
constexpr int kSumThreads = 256;

// A GroupedRow in shared memory, where nothing can be initialised.
struct TileRow {
  std::int64_t group, a_batch, a_row, d_batch, d_row;
};

struct SharedGroupedTile {
  SharedTile<16, 64> tile;
  TileRow rows[16];

  static constexpr int kRows = 16, kCols = 64;

  // The smallest group above `group` in the tile; negative: none.
  __device__ std::int64_t group_above(std::int64_t group) const {
    std::int64_t found = -1;
    for (int r = 0; r < kRows; ++r) {
      if (rows[r].group > group && (found < 0 || rows[r].group < found)) found = rows[r].group;
    }
    return found;
  }
};

// Whether every row must be NaN; all threads of the CTA, each looks at its share of the entries.
__device__ bool any_bad_entry(const GroupedGemmProblem& problem) {
  bool bad = false;
  if (problem.routing.kind != Routing::Kind::row_groups) {
    for (std::int64_t entry = threadIdx.x; entry < index_entries(problem); entry += blockDim.x) bad = bad || is_bad_entry(problem, entry);
  }
  return __syncthreads_or(bad) != 0;
}

// Row `row` of `values` where something follows, else D: rounded.
__device__ void store_row_value(const GroupedGemmProblem& problem, float* values, std::int64_t row, const TileRow& at, std::int64_t col,
                                float value) {
  if (values != nullptr) {
    values[row * problem.gemm.d.cols + col] = value;
  } else {
    store_plain(problem.gemm.d, at.d_batch, at.d_row, col, value);
  }
}

// Calls store(r, c) for each output of the tile that exists, in a row for which wanted(its group) holds.
template <class Wanted, class Store>
__device__ void for_each_output(const SharedGroupedTile& shared, std::int64_t cols_left, const Wanted& wanted, const Store& store) {
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x); item < SharedGroupedTile::kRows * SharedGroupedTile::kCols; item += kTileThreads) {
    const int r = item / SharedGroupedTile::kCols, c = item % SharedGroupedTile::kCols;
    if (c < cols_left && shared.rows[r].group != kNoRow && wanted(shared.rows[r].group)) store(r, c);
  }
}

// values: grouped rows x N FP32, where D is a block format or rows are summed; else null.
__global__ void __launch_bounds__(kTileThreads)
    grouped_gemm_tiles(const __grid_constant__ GroupedGemmProblem problem, float* values, std::int64_t tiles) {
  __shared__ SharedGroupedTile shared;
  constexpr int kRows = SharedGroupedTile::kRows, kCols = SharedGroupedTile::kCols;
  const std::int64_t rows = grouped_rows(problem), col_tiles = ceil_div(problem.gemm.d.cols, kCols);
  const bool all_bad = any_bad_entry(problem);
  const int own_row = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t first_row = tile / col_tiles * kRows, first_col = tile % col_tiles * kCols;
    if (own_row < kRows) {
      GroupedRow at{.group = kNoRow};
      if (first_row + own_row < rows) {
        at = grouped_row(problem, first_row + own_row);
        if (all_bad) at.group = kBadGroup;
      }
      shared.rows[own_row] = {at.group, at.a_batch, at.a_row, at.d_batch, at.d_row};
    }
    __syncthreads();  // the rows of the tile are known
    const std::int64_t cols_left = problem.gemm.d.cols - first_col;
    for_each_output(
        shared, cols_left, [](std::int64_t group) { return group < 0; },
        [&](int r, int c) {
          const float value = shared.rows[r].group == kBadGroup ? bits_float(0x7FC00000u) : 0.0f;
          store_row_value(problem, values, first_row + r, shared.rows[r], first_col + c, value);
        });
#pragma unroll 1
    for (std::int64_t group = shared.group_above(-1); group >= 0; group = shared.group_above(group)) {
      if (own_row < kRows) {
        const TileRow& at = shared.rows[own_row];
        RowAddress address{0, -1, -1};
        if (at.group == group) address = {at.a_batch, at.a_row, scale_row_of(problem, problem.gemm.a, group, at.a_row)};
        shared.tile.a.rows[own_row] = address;
      }
      multiply_outputs(shared.tile, problem.gemm, group, first_col);
      for_each_output(
          shared, cols_left, [=](std::int64_t of_row) { return of_row == group; },
          [&](int r, int c) {
            const TileRow& at = shared.rows[r];
            const OutputIndex index{at.d_batch, at.d_row, first_col + c, at.a_batch, at.a_row, group};
            const float value = finish_value(problem.gemm, index, shared.tile.acc[r][c], shared.tile.acc_up[r][c]);
            store_row_value(problem, values, first_row + r, at, first_col + c, value);
          });
      __syncthreads();  // the sums are read: the next group may overwrite them
    }
    __syncthreads();  // the rows are read: the next tile may overwrite them
  }
}

// The grouped rows of `token` among kSumThreads from `first` on, in ascending order, into `list`. Returns how many.
__device__ int list_rows_of_token(const GroupedGemmProblem& problem, std::int64_t token, std::int64_t first, std::int64_t* list,
                                  int* warp_counts) {
  const std::int64_t row = first + threadIdx.x;
  const bool mine = row < grouped_rows(problem) && problem.routing.gather[row] == token && group_of(problem, row) != kNoGroup;
  const unsigned mask = __ballot_sync(0xFFFFFFFFu, mine);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();  // the list of the rows before is read
  if (lane() == 0) warp_counts[warp] = __popc(mask);
  __syncthreads();  // every warp has counted
  int place = __popc(mask & ((1u << lane()) - 1)), total = 0;
  for (int w = 0; w < kSumThreads / kWarp; ++w) {
    if (w < warp) place += warp_counts[w];
    total += warp_counts[w];
  }
  if (mine) list[place] = row;
  __syncthreads();  // the list is complete
  return total;
}

// A CTA sums kSumThreads columns of one token. sums: tokens x N FP32, where D is a block format; else null.
__global__ void __launch_bounds__(kSumThreads)
    sum_token_rows(const __grid_constant__ GroupedGemmProblem problem, const float* values, float* sums, std::int64_t pieces) {
  __shared__ std::int64_t list[kSumThreads];
  __shared__ int warp_counts[kSumThreads / kWarp];
  const MutableMatrix& d = problem.gemm.d;
  const std::int64_t col_pieces = ceil_div(d.cols, kSumThreads);
  const bool all_bad = any_bad_entry(problem);
  for (std::int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::int64_t token = piece / col_pieces, col = piece % col_pieces * kSumThreads + threadIdx.x;
    float total = all_bad ? bits_float(0x7FC00000u) : 0.0f;
    for (std::int64_t first = 0; first < grouped_rows(problem) && !all_bad; first += kSumThreads) {
      const int count = list_rows_of_token(problem, token, first, list, warp_counts);
      if (col >= d.cols) continue;
      for (int i = 0; i < count; ++i) total += weight_of(problem.routing, list[i]) * values[list[i] * d.cols + col];
    }
    if (col < d.cols) store_output(d, sums, 0, token, col, total);
  }
}

// The rows of scale_128x4_per_group scales that a buffer holds for any routing (storage()).
std::int64_t most_padded_rows(const GroupedGemmProblem& problem) {
  const std::int64_t rows = problem.gemm.d.rows;
  const std::int64_t padded = rows + 127 * std::min(rows, groups_of(problem));
  return padded - padded % 128;
}

// Zeros in every scale of the groups' tiles, padding included; NaN in the whole buffer where the routing is bad.
__global__ void __launch_bounds__(kSumThreads)
    fill_group_scales(const __grid_constant__ GroupedGemmProblem problem, std::int64_t most_rows) {
  const MutableMatrix& d = problem.gemm.d;
  const bool all_bad = any_bad_entry(problem);
  const std::int64_t rows = all_bad ? most_rows : padded_group_start(problem.routing, groups_of(problem));
  const std::int64_t bytes = scale_128x4_bytes(rows, d.scale_cols());
  const auto fill = static_cast<std::byte>(all_bad ? nan_code(d.format.scale) : 0u);
  for (std::int64_t item = first_item(); item < bytes; item += item_step()) d.scales[item] = fill;
}

// The scale row of each row of D under scale_128x4_per_group: -1 for a row of no group, and for all where the routing is bad.
__global__ void __launch_bounds__(kSumThreads)
    find_scale_rows(const __grid_constant__ GroupedGemmProblem problem, std::int64_t* scale_rows) {
  const bool all_bad = any_bad_entry(problem);
  for (std::int64_t row = first_item(); row < problem.gemm.d.rows; row += item_step()) {
    const std::int64_t group = all_bad ? kNoGroup : group_of(problem, row);
    scale_rows[row] = group < 0 ? -1 : scale_row_of(problem, problem.gemm.d, group, row);
  }
}

// Scratch, one part after the other: FP32 values of the grouped rows where they are summed, those of D where it is a block
// format, the scale rows of D where it keeps them per group.
struct Scratch {
  std::int64_t row_values, output_values, scale_rows;  // bytes

  std::int64_t bytes() const { return row_values + output_values + scale_rows; }
};

Scratch scratch_of(const GroupedGemmProblem& problem) {
  const MutableMatrix& d = problem.gemm.d;
  const bool per_group = d.format.has_scales() && d.scale_layout == ScaleLayout::scale_128x4_per_group;
  return {is_summed(problem.routing) ? round_up(grouped_rows(problem) * d.cols * 4, 256) : 0, output_values_bytes(d),
          per_group ? round_up(d.rows * 8, 256) : 0};
}

Status place_group_scales(const GroupedGemmProblem& problem, std::int64_t* scale_rows, cudaStream_t stream) {
  const MutableMatrix& d = problem.gemm.d;
  const std::int64_t most_rows = most_padded_rows(problem);
  const dim3 grid = grid_for(scale_128x4_bytes(most_rows, d.scale_cols()), kSumThreads);
  FINESCALE_TRY(launch(kName, fill_group_scales, grid, kSumThreads, stream, problem, most_rows));
  return launch(kName, find_scale_rows, grid_for(d.rows, kSumThreads), kSumThreads, stream, problem, scale_rows);
}

}  // namespace

Choice configure_grouped_gemm_generic(const GroupedGemmProblem& problem, const DeviceInfo&) {
  return {.scratch_bytes = scratch_of(problem).bytes()};
}

Status grouped_gemm_generic(const GroupedGemmProblem& problem, const Choice&, const Execution& execution) {
  const MutableMatrix& d = problem.gemm.d;
  if (d.batch * d.rows * d.cols == 0) return {};
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  const cudaStream_t stream = stream_of(execution);
  const Scratch parts = scratch_of(problem);
  std::byte* scratch = execution.workspace.scratch;
  float* output_values = parts.output_values != 0 ? reinterpret_cast<float*>(scratch + parts.row_values) : nullptr;
  float* row_values = parts.row_values != 0 ? reinterpret_cast<float*>(scratch) : output_values;
  GroupedGemmProblem product = problem;
  if (is_summed(problem.routing)) product.gemm.epilogue.beta = 0.0f;  // a weighted sum has no residual
  const std::int64_t tiles = ceil_div(grouped_rows(problem), SharedGroupedTile::kRows) * ceil_div(d.cols, SharedGroupedTile::kCols);
  if (tiles != 0) FINESCALE_TRY(launch(kName, grouped_gemm_tiles, grid_for(tiles, 1), kTileThreads, stream, product, row_values, tiles));
  if (is_summed(problem.routing)) {
    const std::int64_t pieces = d.rows * ceil_div(d.cols, kSumThreads);
    FINESCALE_TRY(launch(kName, sum_token_rows, grid_for(pieces, 1), kSumThreads, stream, problem, row_values, output_values, pieces));
  }
  if (output_values == nullptr) return {};
  std::int64_t* scale_rows = nullptr;
  if (parts.scale_rows != 0) {
    scale_rows = reinterpret_cast<std::int64_t*>(scratch + parts.row_values + parts.output_values);
    FINESCALE_TRY(place_group_scales(problem, scale_rows, stream));
  }
  return quantize_output(d, output_values, scale_rows, stream);
}

}  // namespace finescale::cuda
