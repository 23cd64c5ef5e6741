// The leaves in plain C++, for every processor. A product is rounded, then the sum: the default bound's gamma(K + 8) holds.
#include "backends/cpu/kernels/decode_tables.h"
#include "backends/cpu/kernels/leaves.h"

#include <finescale/layouts/packed_codes.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu::portable {
namespace {

float scale_at(const PanelCodes& panel, const unsigned char* scales, std::int64_t index) {
  if (panel.scale == Element::none) return 1.0f;
  if (const float* table = decode_table(panel.scale)) return table[scales[index]];
  return decode(panel.scale, load_code(reinterpret_cast<const std::byte*>(scales), index, bits(panel.scale), false));
}

// One 32-bit lane: the codes of one row in the next 8 (4-bit) or 4 (8-bit) columns.
void decode_lane(Element element, const unsigned char* lane, float scale, float* out) {
  const float* table = decode_table(element);
  for (int byte = 0; byte < 4; ++byte) {
    if (element == Element::e2m1) {
      out[byte * kPanelRows] = table[lane[byte] & 0xF] * scale;
      out[(byte + 4) * kPanelRows] = table[lane[byte] >> 4] * scale;
    } else {
      out[byte * kPanelRows] = table[lane[byte]] * scale;
    }
  }
}

void decode_panel(const PanelCodes& panel, std::int64_t cols, float* out) {
  const std::int64_t lane_cols = panel.element == Element::e2m1 ? 8 : 4;
  for (std::int64_t k = 0; k < cols; k += lane_cols) {
    const unsigned char* unit = panel.units + k / panel.unit_cols * panel.unit_bytes;
    const std::int64_t in_unit = k % panel.unit_cols, block = in_unit / panel.block_cols;
    const unsigned char* lanes = unit + panel.scale_bytes + in_unit / lane_cols * 64;
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      decode_lane(panel.element, lanes + row * 4, scale_at(panel, unit, block * kPanelRows + row), out + k * kPanelRows + row);
    }
  }
}

template <int kRows>
void multiply_tile(const float* a, const float* panel, std::int64_t depth, float* sums, bool first) {
  float acc[kRows][kPanelRows] = {};
  if (!first) std::memcpy(acc, sums, sizeof acc);
  for (std::int64_t k = 0; k < depth; ++k, a += kRows, panel += kPanelRows) {
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kPanelRows; ++n) acc[r][n] += a[r] * panel[n];
    }
  }
  std::memcpy(sums, acc, sizeof acc);
}

void multiply(std::int64_t rows, const float* a, const float* panel, std::int64_t depth, float* sums, bool first) {
  switch (rows) {
    case 1: return multiply_tile<1>(a, panel, depth, sums, first);
    case 2: return multiply_tile<2>(a, panel, depth, sums, first);
    case 3: return multiply_tile<3>(a, panel, depth, sums, first);
    case 4: return multiply_tile<4>(a, panel, depth, sums, first);
    case 5: return multiply_tile<5>(a, panel, depth, sums, first);
    default: return multiply_tile<6>(a, panel, depth, sums, first);
  }
}

void decode_run(Element element, const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count, float* out) {
  if (element == Element::f32) {
    std::memcpy(out, row + first * 4, static_cast<std::size_t>(count) * 4);
    return;
  }
  const float* table = decode_table(element);
  if (table != nullptr && element != Element::e2m1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = table[row[first + i]];
    return;
  }
  const int width = bits(element);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t code = load_code(reinterpret_cast<const std::byte*>(row), first + i, width, high_nibble_first);
    out[i] = table != nullptr ? table[code] : element == Element::bf16 ? bits_float(code << 16) : decode(element, code);
  }
}

void transpose(const float* in, std::int64_t stride, std::int64_t count, float* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t row = 0; row < kPanelRows; ++row) out[k * kPanelRows + row] = in[row * stride + k];
  }
}

}  // namespace

const Leaves kLeaves{decode_panel, multiply, nullptr, decode_run, transpose, nullptr};

}  // namespace finescale::cpu::portable
