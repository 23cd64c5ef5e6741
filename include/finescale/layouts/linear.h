// Linear layouts: two strides, in elements. K-major has column stride 1, MN-major row stride 1; stride 0 broadcasts.
#pragma once

#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

FINESCALE_HD constexpr std::int64_t linear_offset(std::int64_t row, std::int64_t col, std::int64_t row_stride, std::int64_t col_stride) {
  return row * row_stride + col * col_stride;
}

// Elements from the first to one past the last; strides are not negative.
FINESCALE_HD constexpr std::int64_t linear_extent(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride) {
  return rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
}

static_assert(linear_offset(2, 3, 8, 1) == 19 && linear_extent(3, 4, 8, 1) == 20 && linear_extent(0, 4, 8, 1) == 0);

}  // namespace finescale
