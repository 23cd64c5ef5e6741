// Writing codes and block scales from many threads: 4-bit codes share bytes, and padding is written as zeros.
#pragma once

#include <finescale/access.h>
#include <finescale/matrix.h>

#include <cstdint>

namespace finescale::cuda {

// Columns that one thread writes at once: those whose codes share a byte.
FINESCALE_HD constexpr std::int64_t codes_per_byte(const Format& format) { return bits(format.element) == 4 ? 2 : 1; }

// Bytes (4-bit codes) or codes (wider ones) of a row.
FINESCALE_HD constexpr std::int64_t units_per_row(const MutableMatrix& matrix) {
  return ceil_div(matrix.cols, codes_per_byte(matrix.format));
}

// Writes unit `unit` of a row: code_of(col) for each of its columns; an unused nibble as 0. Not for prepared layouts.
template <class CodeOf>
__device__ void store_unit(const MutableMatrix& to, std::int64_t batch, std::int64_t row, std::int64_t unit, const CodeOf& code_of) {
  const std::int64_t per_byte = codes_per_byte(to.format), col = unit * per_byte;
  const bool high_first = to.codes == CodeLayout::high_nibble_first;
  std::uint32_t unit_bits = 0;
#pragma unroll 1
  for (std::int64_t i = 0; i < per_byte && col + i < to.cols; ++i) {
    const bool high = per_byte == 2 && (i != 0) != high_first;
    unit_bits |= code_of(col + i) << (high ? 4 : 0);
  }
  const auto place = code_place(to, batch, row, col);  // rows start at whole bytes
  if (per_byte == 2) {
    place.base[place.index / 2] = static_cast<std::byte>(unit_bits);
  } else {
    store_code(place.base, place.index, bits(to.format.element), false, unit_bits);
  }
}

// Rows and columns of the block scales of one batch with the padding of their layout.
struct ScaleExtent {
  std::int64_t rows, cols;
};

FINESCALE_HD constexpr ScaleExtent padded_scale_extent(const MutableMatrix& matrix) {
  if (!matrix.format.has_scales() || is_prepared(matrix.codes)) return {0, 0};
  return {round_up(matrix.scale_rows(), tile_rows(matrix.scale_layout)), round_up(matrix.scale_cols(), tile_cols(matrix.scale_layout))};
}

}  // namespace finescale::cuda
