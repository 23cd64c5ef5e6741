// Tiled layouts of one-byte block scales, R rows by C columns (C = blocks along K). Padding is written as zeros by
// every producer and never read into a result.
//
// scale_128x4: 512-byte tiles of 128 rows x 4 columns, the tile of the next 4 columns first. The same layout is called
//   SWIZZLE_32_4_4, SFA/SFB or to_blocked elsewhere (cuBLAS 13 block scaling layout; CUTLASS SfAtom).
// scale_8x4: 32-byte tiles of 8 rows x 4 columns, row-major inside (TensorRT-LLM layout_8x4).
#pragma once

#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

FINESCALE_HD constexpr std::int64_t scale_128x4_offset(std::int64_t row, std::int64_t col, std::int64_t cols) {
  const std::int64_t tile = (row / 128) * ceil_div(cols, 4) + col / 4;
  return tile * 512 + (row % 32) * 16 + (row % 128) / 32 * 4 + col % 4;
}

FINESCALE_HD constexpr std::int64_t scale_128x4_bytes(std::int64_t rows, std::int64_t cols) {
  return round_up(rows, 128) * round_up(cols, 4);
}

FINESCALE_HD constexpr std::int64_t scale_8x4_offset(std::int64_t row, std::int64_t col, std::int64_t cols) {
  const std::int64_t tile = (row / 8) * ceil_div(cols, 4) + col / 4;
  return tile * 32 + (row % 8) * 4 + col % 4;
}

FINESCALE_HD constexpr std::int64_t scale_8x4_bytes(std::int64_t rows, std::int64_t cols) { return round_up(rows, 8) * round_up(cols, 4); }

static_assert(scale_128x4_offset(128, 4, 8) == 1536 && scale_128x4_offset(127, 3, 4) == 511);
static_assert(scale_128x4_bytes(129, 4) == 1024 && scale_8x4_bytes(9, 5) == 128);

}  // namespace finescale
