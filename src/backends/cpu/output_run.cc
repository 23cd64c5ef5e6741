#include "backends/cpu/output_run.h"

#include "backends/cpu/finish_values.h"
#include "backends/padding.h"

#include <finescale/access.h>
#include <finescale/finish.h>
#include <finescale/formats/block_quantizer.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

std::uint16_t to_bf16(float value) {
  const std::uint32_t word = float_bits(value);
  return static_cast<std::uint16_t>(is_nan(value) ? BF16::kNan : (word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

// Below 2^-14 an addition of 0.5 leaves the nearest multiple of f16's smallest step in the low bits; above, the bits are
// rebiased and rounded as an integer.
std::uint16_t to_f16(float value) {
  const std::uint32_t word = float_bits(value), sign = word >> 16 & 0x8000u, magnitude = word & 0x7FFFFFFFu;
  const std::uint32_t normal = (magnitude + 0xFFFu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  const std::uint32_t subnormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3F000000u;
  const std::uint32_t rounded = magnitude < 0x38800000u ? subnormal : normal < 0x7C00u ? normal : 0x7C00u;
  return static_cast<std::uint16_t>(magnitude > 0x7F800000u ? F16::kNan : sign | rounded);
}

// One block, or without block scales any run of columns.
void quantize_block(const MutableMatrix& d, const BlockRows& at, std::int64_t first, std::int64_t count, const ValueRun& values) {
  float run[kRunCols];
  float amax = 0.0f;
  const auto each = [&](const auto& visit) {
    for (std::int64_t r = 0; r < at.rows; ++r) {
      for (std::int64_t col = first; col < first + count; col += kRunCols) {
        const std::int64_t n = std::min(kRunCols, first + count - col);
        values(r, col, n, run);
        for (std::int64_t i = 0; i < n; ++i) visit(r, col + i, run[i]);
      }
    }
  };
  if (d.format.has_scales()) each([&](std::int64_t, std::int64_t, float value) { amax = block_amax(amax, value); });
  const float g = global_at(d, at.batch, at.row);
  const std::uint32_t scale = block_scale_code(d.format, Recipe{}, amax, g);
  const BlockQuantizer quantizer = block_quantizer(d.format, Recipe{}, scale, g);
  if (d.format.has_scales() && at.scale_row >= 0) set_scale_code(d, at.batch, at.scale_row, first, scale);
  each([&](std::int64_t r, std::int64_t col, float value) { set_code(d, at.batch, at.row + r, col, quantizer.encode(value)); });
}

}  // namespace

void store_run(const MutableMatrix& d, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count, const float* values) {
  const auto place = code_place(d, batch, row, first);
  if (d.col_stride == 1 && d.format.element == Element::f32) {
    auto* out = place.base + place.index * 4;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = stored_value(values[i]);
      std::memcpy(out + i * 4, &value, 4);
    }
  } else if (d.col_stride == 1 && d.format.element == Element::bf16) {
    auto* out = reinterpret_cast<std::uint16_t*>(place.base) + place.index;
    for (std::int64_t i = 0; i < count; ++i) out[i] = to_bf16(values[i]);
  } else if (d.col_stride == 1 && d.format.element == Element::f16) {
    auto* out = reinterpret_cast<std::uint16_t*>(place.base) + place.index;
    for (std::int64_t i = 0; i < count; ++i) out[i] = to_f16(values[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) store_plain(d, batch, row, first + i, values[i]);
  }
}

void zero_unused_nibbles(const MutableMatrix& d, const BlockRows& at) {
  for (std::int64_t r = 0; r < at.rows; ++r) zero_unused_nibble(d, at.batch, at.row + r);
}

void quantize_run(const MutableMatrix& d, const BlockRows& at, std::int64_t first, std::int64_t count, const ValueRun& values) {
  const std::int64_t width = d.format.has_scales() ? d.format.block_cols : count;
  for (std::int64_t col = first; col < first + count; col += width) {
    quantize_block(d, at, col, std::min(width, first + count - col), values);
  }
  if (first + count == d.cols) zero_unused_nibbles(d, at);
}

}  // namespace finescale::cpu
