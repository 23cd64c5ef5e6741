#include "backends/cpu/quantize_blocks.h"

#include "backends/cpu/quantize_driver.h"
#include "backends/cpu/row_reader.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/formats/philox.h>
#include <finescale/producer.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

// Calls visit(row in the block, column, value) for every element, a run at a time.
template <class Visit>
void each_value(BlockSource& source, const BlockRows& at, std::int64_t first, std::int64_t count, const Visit& visit) {
  float buffer[kSourceCols];
  for (std::int64_t r = 0; r < at.rows; ++r) {
    for (std::int64_t col = first; col < first + count; col += kSourceCols) {
      const std::int64_t n = std::min(kSourceCols, first + count - col);
      const float* values = source.run(at.batch, at.row + r, col, n, buffer);
      for (std::int64_t i = 0; i < n; ++i) visit(r, col + i, values[i]);
    }
  }
}

std::uint32_t random_word(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col) {
  if (problem.recipe.rounding != Rounding::stochastic) return 0;
  return philox_word(problem.recipe.seed, static_cast<std::uint64_t>((batch * problem.to.rows + row) * problem.to.cols + col));
}

// One block; without block scales any run of columns.
void quantize_block(BlockSource& source, const BlockRows& at, std::int64_t first, std::int64_t count) {
  const MutableMatrix& to = source.problem().to;
  const Recipe& recipe = source.problem().recipe;
  const float g = global_at(to, at.batch, at.row);
  float amax = 0.0f;
  if (to.format.has_scales()) {
    each_value(source, at, first, count, [&](std::int64_t, std::int64_t, float value) { amax = block_amax(amax, value); });
  }
  std::uint32_t scale = block_scale_code(to.format, recipe, amax, g);
  if (recipe.search != ScaleSearch::max) {
    float buffer[kSearchBlock];
    const float* x = source.run(at.batch, at.row, first, count, buffer);
    scale = searched_scale_code(to.format, recipe, x, static_cast<int>(count), amax, g);
  }
  const BlockQuantizer quantizer = block_quantizer(to.format, recipe, scale, g);
  if (to.format.has_scales()) set_scale_code(to, at.batch, at.row, first, scale);
  each_value(source, at, first, count, [&](std::int64_t r, std::int64_t col, float value) {
    const std::int64_t row = at.row + r;
    set_code(to, at.batch, row, col, quantizer.encode(value, random_word(source.problem(), at.batch, row, col)));
  });
}

// One-byte scales of neighbouring blocks of a row, the first at a multiple of four: in every layout four lie side by side, but
// for linear ones with a column stride.
void store_scales(const MutableMatrix& to, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count,
                  const std::uint8_t* scales) {
  const std::int64_t block_cols = to.format.block_cols;
  const std::int64_t each = to.scale_layout != ScaleLayout::linear ? 4 : to.scale_col_stride == 1 ? count : 1;
  for (std::int64_t i = 0; i < count; i += each) {
    const auto place = scale_place(to, batch, row, first + i * block_cols);
    std::memcpy(place.base + place.index, scales + i, static_cast<std::size_t>(std::min(each, count - i)));
  }
}

// A run of one row by the leaf. A partial last block is filled up with zeros: they change no amax and have code 0.
void quantize_with_leaf(BlockSource& source, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count) {
  const MutableMatrix& to = source.problem().to;
  constexpr std::int64_t kBlock = kSearchBlock;
  float buffer[kSourceCols];
  const float* values = source.run(batch, row, first, count, buffer);
  if (count % kBlock != 0) {
    if (values != buffer) std::copy_n(values, count, buffer);
    std::fill(buffer + count, buffer + round_up(count, kBlock), 0.0f);
    values = buffer;
  }
  std::uint8_t scales[kSourceCols / kBlock], codes[kSourceCols / 2];
  const std::int64_t blocks = ceil_div(count, kBlock);
  source.leaves().quantize_nvfp4(values, blocks, global_at(to, batch, row), scales, codes);
  const auto place = code_place(to, batch, row, first);
  std::memcpy(place.base + place.index / 2, codes, static_cast<std::size_t>(ceil_div(count, 2)));
  store_scales(to, batch, row, first, blocks, scales);
}

}  // namespace

float BlockSource::row_factor(std::int64_t batch, std::int64_t row) {
  if (problem_.producer.kind != Producer::rms_norm || (batch == batch_ && row == row_)) return factor_;
  double sum = 0;
  for (std::int64_t col = 0; col < problem_.to.cols; ++col) {
    const double x = rms_input(problem_, batch, row, col);
    sum += x * x;
  }
  batch_ = batch;
  row_ = row;
  return factor_ = rms_factor(sum, problem_.to.cols, problem_.producer.eps);
}

const float* BlockSource::run(std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count, float* buffer) {
  const Matrix& from = problem_.from;
  const bool plain = problem_.producer.kind == Producer::none && problem_.producer.intermediate == Element::f32;
  if (!plain) {
    const float factor = row_factor(batch, row);
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = produced_value(problem_, batch, row, first + i, factor);
  } else if (from.format.element == Element::f32 && from.col_stride == 1) {
    const auto place = code_place(from, batch, row, first);
    return reinterpret_cast<const float*>(place.base) + place.index;
  } else {
    read_row(leaves_, from, batch, row, row, first, count, buffer);
  }
  return buffer;
}

void quantize_piece(BlockSource& source, const BlockRows& at, std::int64_t first, std::int64_t count) {
  const MutableMatrix& to = source.problem().to;
  const bool valid = is_valid_global(to.format, global_at(to, at.batch, at.row));
  if (source.leaves().quantize_nvfp4 != nullptr && valid && !quantize_nvfp4_supports(source.problem(), {})) {
    quantize_with_leaf(source, at.batch, at.row, first, count);
  } else {
    const std::int64_t width = to.format.has_scales() ? to.format.block_cols : count;
    for (std::int64_t col = first; col < first + count; col += width) quantize_block(source, at, col, std::min(width, first + count - col));
  }
  if (first + count == to.cols) zero_unused_nibbles(to, at);
}

}  // namespace finescale::cpu
