// What lies in the buffers of a matrix and belongs to no element: the padding of tiled block scales, and the high nibble after
// an odd number of 4-bit codes. Every producer writes it as zeros.
#pragma once

#include <finescale/access.h>
#include <finescale/matrix.h>

#include <cstdint>
#include <cstring>

namespace finescale {

// Strides filled in; not for prepared layouts. `scale_rows` is that of the tiles: scale_rows() of the matrix, but for
// scale_128x4_per_group all groups with each padded.
inline void zero_scale_tiles(const MutableMatrix& matrix, std::int64_t scale_rows) {
  if (!matrix.format.has_scales() || !is_tiled(matrix.scale_layout)) return;
  const std::int64_t bytes = padded_scales(matrix.scale_layout, scale_rows, matrix.scale_cols());
  if (bytes == 0) return;
  for (std::int64_t b = 0; b < matrix.batch; ++b) {
    std::memset(matrix.scales + b * matrix.scale_batch_stride, 0, static_cast<std::size_t>(bytes));
  }
}

inline void zero_unused_nibble(const MutableMatrix& matrix, std::int64_t batch, std::int64_t row) {
  if (bits(matrix.format.element) == 4 && matrix.cols % 2 != 0) set_code(matrix, batch, row, matrix.cols, 0);
}

}  // namespace finescale
