// D of a product: every output from its unrounded FP32 value, stored with one rounding or quantized block by block (profile
// finescale, max scales) when D is a block format.
#pragma once

#include "backends/padding.h"

#include <finescale/finish.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/matrix.h>

#include <algorithm>
#include <cstdint>

namespace finescale::reference {

// Scratch that write_output needs: the FP32 values of one block.
inline std::int64_t output_scratch_bytes(const MutableMatrix& d) {
  return d.format.is_plain() ? 0 : round_up(std::int64_t{d.format.block_rows} * d.format.block_cols * 4, 256);
}

// A block of D: the elements that exist, and the row by which its scale is addressed; -1: it has none (access.h).
struct OutputBlock {
  std::int64_t batch, row, col, rows, cols, scale_row;
};

// value(batch, row, col) is the FP32 value of an output.
template <class Value>
void quantize_output_block(const MutableMatrix& d, const Recipe& recipe, const OutputBlock& block, float* values, const Value& value) {
  float amax = 0.0f;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    for (std::int64_t c = 0; c < block.cols; ++c) {
      float& x = values[r * block.cols + c];
      x = value(block.batch, block.row + r, block.col + c);
      amax = block_amax(amax, x);
    }
  }
  const float g = global_at(d, block.batch, block.row);
  const std::uint32_t scale = block_scale_code(d.format, recipe, amax, g);
  const BlockQuantizer quantizer = block_quantizer(d.format, recipe, scale, g);
  if (d.format.has_scales() && block.scale_row >= 0) set_scale_code(d, block.batch, block.scale_row, block.col, scale);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    for (std::int64_t c = 0; c < block.cols; ++c) {
      set_code(d, block.batch, block.row + r, block.col + c, quantizer.encode(values[r * block.cols + c]));
    }
  }
}

// value as above; scale_row(batch, row) gives OutputBlock::scale_row. `values` is scratch of output_scratch_bytes.
template <class Value, class ScaleRow>
void write_output(const MutableMatrix& d, const Recipe& recipe, float* values, const Value& value, const ScaleRow& scale_row) {
  const std::int64_t block_rows = d.format.block_rows, block_cols = d.format.block_cols;
  for (std::int64_t b = 0; b < d.batch; ++b) {
    for (std::int64_t m = 0; m < d.rows; m += block_rows) {
      for (std::int64_t n = 0; n < d.cols; n += block_cols) {
        if (d.format.is_plain()) {
          store_plain(d, b, m, n, value(b, m, n));
        } else {
          const OutputBlock block{b, m, n, std::min(block_rows, d.rows - m), std::min(block_cols, d.cols - n), scale_row(b, m)};
          quantize_output_block(d, recipe, block, values, value);
        }
      }
    }
    for (std::int64_t m = 0; m < d.rows; ++m) zero_unused_nibble(d, b, m);
  }
}

}  // namespace finescale::reference
