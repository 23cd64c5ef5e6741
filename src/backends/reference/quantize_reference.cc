// to = Q(producer(from))                                                     (docs/quantizers.md; formats/block_quantizer.h)
//
// First the global scale of each set of rows that share one, then block after block: amax, scale, codes. Values are formed
// again each time they are needed, so no scratch is.
#include "backends/float_environment.h"
#include "backends/padding.h"
#include "backends/quantize_rules.h"
#include "backends/reference/conversions.h"
#include "backends/reference/produced_rows.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/formats/philox.h>
#include <finescale/formats/profiles.h>

#include <algorithm>
#include <cstdint>

namespace finescale::reference {
namespace {

// Batches and rows that share a global scale, and where in to.global it stands: once a batch, or once a row.
struct SharedRows {
  std::int64_t first_batch, batches, first_row, rows;
};

class Quantizer {
 public:
  explicit Quantizer(const QuantizeProblem& problem) : problem_(problem), to_(problem.to), values_(problem) {}

  void quantize() {
    if (!problem_.global_given) write_globals();
    zero_scale_tiles(to_, to_.scale_rows());
    for (std::int64_t b = 0; b < to_.batch; ++b) {
      for (std::int64_t r = 0; r < to_.rows; r += to_.format.block_rows) {
        for (std::int64_t c = 0; c < to_.cols; c += to_.format.block_cols) quantize_block(b, r, c);
      }
      for (std::int64_t r = 0; r < to_.rows; ++r) zero_unused_nibble(to_, b, r);
    }
    if (!problem_.global_given) each_global([&](float& g) { g = profile_decode_global(problem_.recipe.profile, g); });
  }

 private:
  float value(std::int64_t batch, std::int64_t row, std::int64_t col) {
    return profile_input(problem_.recipe.profile, problem_.from.format.element, values_(batch, row, col));
  }

  // The multiplier of a row as the profile keeps it. While quantize() runs, computed ones stand in to.global in that form.
  float global_of(std::int64_t batch, std::int64_t row) const {
    const float g = global_at(to_, batch, row);
    return problem_.global_given && to_.global_kind != GlobalScale::none ? profile_decode_global(problem_.recipe.profile, g) : g;
  }

  template <class Visit>
  void each_global(const Visit& visit) {
    for (std::int64_t i = 0; i < global_count(to_); ++i) visit(to_.global[i]);
  }

  void write_globals() {
    switch (to_.global_kind) {
      case GlobalScale::none: break;
      case GlobalScale::one: to_.global[0] = computed_global({0, to_.batch, 0, to_.rows}); break;
      case GlobalScale::per_batch:
        for (std::int64_t b = 0; b < to_.batch; ++b) to_.global[b] = computed_global({b, 1, 0, to_.rows});
        break;
      case GlobalScale::per_row:
        for (std::int64_t b = 0; b < to_.batch; ++b) write_segment_globals(b);
        break;
    }
  }

  void write_segment_globals(std::int64_t batch) {
    const RowSegments& segments = problem_.segments;
    const std::int64_t count = segments.count != 0 ? segments.count : to_.rows;
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t end = segments.count != 0 ? segments.ends[i] : i + 1;
      const float g = computed_global({batch, 1, row, end - row});
      for (; row < end; ++row) to_.global[batch * to_.rows + row] = g;
    }
  }

  float computed_global(const SharedRows& shared) {
    float amax = 0.0f;
    bool all_finite = true;
    for (std::int64_t b = shared.first_batch; b < shared.first_batch + shared.batches; ++b) {
      for (std::int64_t r = shared.first_row; r < shared.first_row + shared.rows; ++r) {
        for (std::int64_t c = 0; c < to_.cols; ++c) {
          const float x = value(b, r, c);
          amax = global_amax(amax, x);
          all_finite = all_finite && is_finite(x);
        }
      }
    }
    const Recipe& recipe = problem_.recipe;
    if (recipe.profile == Profile::finescale) return global_scale(to_.format, amax, all_finite);
    return profile_global(to_.format, recipe.profile, problem_.from.format.element, amax);
  }

  void quantize_block(std::int64_t batch, std::int64_t row, std::int64_t col) {
    const Format& format = to_.format;
    const Recipe& recipe = problem_.recipe;
    const std::int64_t rows = std::min<std::int64_t>(format.block_rows, to_.rows - row);
    const std::int64_t cols = std::min<std::int64_t>(format.block_cols, to_.cols - col);
    float amax = 0.0f;
    for (std::int64_t r = row; r < row + rows; ++r) {
      for (std::int64_t c = col; c < col + cols; ++c) amax = profile_amax(recipe.profile, amax, value(batch, r, c));
    }
    const float g = global_of(batch, row);
    if (recipe.profile != Profile::finescale) {
      return write_block(batch, row, col, rows, cols, profile_quantizer(format, recipe, problem_.from.format.element, amax, g));
    }
    std::uint32_t scale = block_scale_code(format, recipe, amax, g);
    if (recipe.search != ScaleSearch::max) {
      float x[kSearchBlock] = {};
      for (std::int64_t c = 0; c < cols; ++c) x[c] = value(batch, row, col + c);
      scale = searched_scale_code(format, recipe, x, static_cast<int>(cols), amax, g);
    }
    write_block(batch, row, col, rows, cols, block_quantizer(format, recipe, scale, g));
  }

  template <class Block>
  void write_block(std::int64_t batch, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, const Block& block) {
    if (to_.format.has_scales()) set_scale_code(to_, batch, row, col, block.scale_code);
    for (std::int64_t r = row; r < row + rows; ++r) {
      for (std::int64_t c = col; c < col + cols; ++c)
        set_code(to_, batch, r, c, block.encode(value(batch, r, c), random_word(batch, r, c)));
    }
  }

  std::uint32_t random_word(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    if (problem_.recipe.rounding != Rounding::stochastic) return 0;
    return philox_word(problem_.recipe.seed, static_cast<std::uint64_t>((batch * to_.rows + row) * to_.cols + col));
  }

  const QuantizeProblem& problem_;
  const MutableMatrix& to_;
  ProducedValues values_;
};

}  // namespace

Refusal quantize_supports(const QuantizeProblem& problem, const DeviceInfo&) {
  if (problem.to.scale_layout == ScaleLayout::scale_128x4_per_group)
    return {"scale_128x4_per_group needs a routing, which quantize has none of"};
  return recipe_refusal(problem);
}

Status quantize_run(const QuantizeProblem& problem, const Choice&, const Execution&) {
  const FloatEnvironment environment;
  Quantizer(problem).quantize();
  return {};
}

}  // namespace finescale::reference
