// The kernel that quantizes blocks: a team of lanes folds the amax of a block, chooses its scale and writes its codes.
//
//   scale = enc(amax / (E g))     code = enc(x / (scale g))      or as another profile of the recipe says
//
// A team is one thread for short blocks and a warp for long ones; its size is a run-time number, and the long bodies are neither
// inlined nor unrolled, so that one kernel serves every format and six architectures compile in a minute. A matrix without block
// scales is cut into chunks of kChunk columns instead. A block of 4-bit codes has an even number of columns, so that no two
// teams write to one byte. Every arithmetic step is block_quantizer.h's or profiles.h's: the bytes are the reference's.
#pragma once

#include "backends/cuda/device/codes.h"
#include "backends/cuda/device/grid.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/formats/philox.h>
#include <finescale/formats/profiles.h>
#include <finescale/producer.h>
#include <finescale/quantize.h>

#include <cstdint>

namespace finescale::cuda {

inline constexpr int kQuantizeThreads = 256;
inline constexpr std::int64_t kChunk = 32;
inline constexpr std::int64_t kLongestForOneThread = 32;

// The values to quantize. factors: rms_factor of each row of each batch; null but for rms_norm.
struct Produced {
  const float* factors = nullptr;

  // As the recipe's profile sees it.
  __device__ __noinline__ float operator()(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col) const {
    const float factor = factors != nullptr ? factors[batch * problem.to.rows + row] : 1.0f;
    return profile_input(problem.recipe.profile, problem.from.format.element, produced_value(problem, batch, row, col, factor));
  }
};

// The real part of one block.
struct BlockExtent {
  std::int64_t batch, row, col, rows, cols;

  __device__ std::int64_t elements() const { return rows * cols; }
};

__device__ inline float larger_amax(float a, float b) { return float_bits(a) > float_bits(b) ? a : b; }

// Folds the amax over the team; every lane gets it. The largest of all magnitudes does not depend on the order.
__device__ inline float team_amax(int team, const QuantizeProblem& problem, const BlockExtent& block, const Produced& produced) {
  float amax = 0.0f;
#pragma unroll 1
  for (std::int64_t i = lane() % team; i < block.elements(); i += team) {
    const float x = produced(problem, block.batch, block.row + i / block.cols, block.col + i % block.cols);
    amax = profile_amax(problem.recipe.profile, amax, x);
  }
  for (int step = team / 2; step > 0; step /= 2) amax = larger_amax(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
  return amax;
}

// A block whose scale is chosen, by profile finescale or by another.
struct ChosenBlock {
  bool own = true;
  BlockQuantizer by_own;
  ProfileQuantizer by_other;

  __device__ __noinline__ std::uint32_t encode(float x, std::uint32_t random) const {
    return own ? by_own.encode(x, random) : by_other.encode(x);
  }
  __device__ std::uint32_t scale_code() const { return own ? by_own.scale_code : by_other.scale_code; }
};

__device__ inline void store_block(int team, const QuantizeProblem& problem, const BlockExtent& block, const Produced& produced,
                                   const ChosenBlock& chosen) {
  const MutableMatrix& to = problem.to;
  const std::int64_t per_byte = codes_per_byte(to.format), units = ceil_div(block.cols, per_byte);
#pragma unroll 1
  for (std::int64_t i = lane() % team; i < block.rows * units; i += team) {
    const std::int64_t row = block.row + i / units;
    store_unit(to, block.batch, row, block.col / per_byte + i % units, [&](std::int64_t col) {
      const float x = produced(problem, block.batch, row, col);
      const auto element = static_cast<std::uint64_t>((block.batch * to.rows + row) * to.cols + col);
      const bool stochastic = problem.recipe.rounding == Rounding::stochastic;
      return chosen.encode(x, stochastic ? philox_word(problem.recipe.seed, element) : 0u);
    });
  }
}

// A search reads all values of a block, which is short: one thread's work.
static __device__ __noinline__ std::uint32_t search_scale(const QuantizeProblem& problem, const BlockExtent& block,
                                                          const Produced& produced, float amax, float g) {
  float x[kSearchBlock] = {};
#pragma unroll 1
  for (int i = 0; i < block.cols; ++i) x[i] = produced(problem, block.batch, block.row, block.col + i);
  return searched_scale_code(problem.to.format, problem.recipe, x, static_cast<int>(block.cols), amax, g);
}

static __device__ __noinline__ ChosenBlock choose_block(const QuantizeProblem& problem, const BlockExtent& block, const Produced& produced,
                                                        float amax) {
  const MutableMatrix& to = problem.to;
  const Recipe& recipe = problem.recipe;
  const float g = global_at(to, block.batch, block.row);
  ChosenBlock chosen{.own = recipe.profile == Profile::finescale};
  if (chosen.own) {
    const bool search = recipe.search != ScaleSearch::max;
    const std::uint32_t scale = search ? search_scale(problem, block, produced, amax, g) : block_scale_code(to.format, recipe, amax, g);
    chosen.by_own = block_quantizer(to.format, recipe, scale, g);
  } else {
    // A computed one stands in to.global as the profile keeps it, until decode_globals.
    const bool given = problem.global_given && to.global_kind != GlobalScale::none;
    const float own_g = given ? profile_decode_global(recipe.profile, g) : g;
    chosen.by_other = profile_quantizer(to.format, recipe, problem.from.format.element, amax, own_g);
  }
  return chosen;
}

__device__ inline void quantize_block(int team, const QuantizeProblem& problem, const BlockExtent& block, const Produced& produced,
                                      std::int64_t scale_row) {
  const bool has_scales = problem.to.format.has_scales();
  const float amax = has_scales ? team_amax(team, problem, block, produced) : 0.0f;
  const ChosenBlock chosen = choose_block(problem, block, produced, amax);
  store_block(team, problem, block, produced, chosen);
  if (!has_scales || scale_row < 0 || lane() % team != 0) return;
  set_scale_code(problem.to, block.batch, scale_row, block.col, chosen.scale_code());
}

// Block shape of the kernel's items: the format's, or a chunk where there are no block scales.
FINESCALE_HD constexpr std::int64_t item_rows(const Format& format) { return format.has_scales() ? format.block_rows : 1; }
FINESCALE_HD constexpr std::int64_t item_cols(const Format& format) { return format.has_scales() ? format.block_cols : kChunk; }

// Teams of 1 or kWarp lanes. extent: blocks of a batch, with padding, whose scales become 0. scale_rows: the row by which the
// scale of each row of each batch is addressed (access.h), -1: it has none; null: the row itself.
static __global__ void __launch_bounds__(kQuantizeThreads)
    quantize_blocks(const __grid_constant__ QuantizeProblem problem, const __grid_constant__ Produced produced,
                    const std::int64_t* scale_rows, ScaleExtent extent, int team) {
  const MutableMatrix& to = problem.to;
  const std::int64_t block_rows = item_rows(to.format), block_cols = item_cols(to.format), items = to.batch * extent.rows * extent.cols;
#pragma unroll 1
  for (std::int64_t item = first_item() / team; item < items; item += item_step() / team) {
    const Position at = position_of(item, extent.rows, extent.cols);
    const std::int64_t row = at.row * block_rows, col = at.col * block_cols;
    if (row >= to.rows || col >= to.cols) {
      if (lane() % team == 0) set_scale_code(to, at.batch, row, col, 0);
      continue;
    }
    const auto least = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
    const BlockExtent block{at.batch, row, col, least(block_rows, to.rows - row), least(block_cols, to.cols - col)};
    quantize_block(team, problem, block, produced, scale_rows != nullptr ? scale_rows[at.batch * to.rows + row] : row);
  }
}

}  // namespace finescale::cuda
