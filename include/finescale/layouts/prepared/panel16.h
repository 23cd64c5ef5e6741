// panel16: the prepared layout of the CPU kernels; GEMV and GEMM read the same bytes.
//
// Sixteen rows form a panel. Along K a panel is cut into units of kUnit columns; a unit holds first its block scales,
// then its codes, so one stream of memory feeds one panel:
//   scales: [block of the unit][row 0..15], as they were (a block of several rows repeats its scale for each row)
//   codes:  64-byte vectors of 16 rows; lane = row, 32 bits a row
//           4-bit: 8 columns a vector; byte j of a lane holds column j in its low and column j + 4 in its high nibble
//           8-bit: 4 columns a vector; byte j of a lane holds column j
// One 32-bit lane a row is what vpdpbusd multiplies and what vpermps decodes. Padding rows and columns are zero.
#pragma once

#include <finescale/formats/format.h>

#include <cstdint>
#include <string_view>

namespace finescale {

struct Panel16 {
  static constexpr std::uint32_t kId = 256;
  static constexpr std::string_view kName = "panel16_v1";
  static constexpr std::int64_t kRows = 16;

  // Block formats of 4-bit or 8-bit elements whose blocks divide a unit.
  FINESCALE_HD static constexpr bool supports(const Format& format) {
    const int width = bits(format.element);
    return !format.is_plain() && (width == 4 || width == 8) && unit(format) % format.block_cols == 0;
  }

  // Columns of a unit: 64, or the block where that is longer.
  FINESCALE_HD static constexpr std::int64_t unit(const Format& format) { return format.block_cols > 64 ? format.block_cols : 64; }

  FINESCALE_HD static constexpr std::int64_t scale_bytes_per_unit(const Format& format) {
    return format.has_scales() ? unit(format) / format.block_cols * kRows * (bits(format.scale) / 8) : 0;
  }
  FINESCALE_HD static constexpr std::int64_t bytes_per_unit(const Format& format) {
    return scale_bytes_per_unit(format) + unit(format) * kRows * bits(format.element) / 8;
  }
  FINESCALE_HD static constexpr std::int64_t bytes_per_panel(const Format& format, std::int64_t cols) {
    return ceil_div(cols, unit(format)) * bytes_per_unit(format);
  }
  // Bytes of one batch.
  FINESCALE_HD static constexpr std::int64_t bytes(const Format& format, std::int64_t rows, std::int64_t cols) {
    return ceil_div(rows, kRows) * bytes_per_panel(format, cols);
  }

  // Index of the code of (row, col), counted in codes from the start of the batch, low nibble first.
  FINESCALE_HD static constexpr std::int64_t code_index(const Format& format, std::int64_t cols, std::int64_t row, std::int64_t col) {
    const int width = bits(format.element);
    const std::int64_t lane_cols = 32 / width;
    const std::int64_t in_unit = col % unit(format), in_lane = in_unit % lane_cols;
    const std::int64_t byte =
        unit_start(format, cols, row, col) + scale_bytes_per_unit(format) + in_unit / lane_cols * 64 + row % kRows * 4;
    return width == 4 ? (byte + in_lane % 4) * 2 + in_lane / 4 : byte + in_lane;
  }

  // Byte offset of the scale of (row, col).
  FINESCALE_HD static constexpr std::int64_t scale_byte(const Format& format, std::int64_t cols, std::int64_t row, std::int64_t col) {
    const std::int64_t block = col % unit(format) / format.block_cols;
    return unit_start(format, cols, row, col) + (block * kRows + row % kRows) * (bits(format.scale) / 8);
  }

 private:
  FINESCALE_HD static constexpr std::int64_t unit_start(const Format& format, std::int64_t cols, std::int64_t row, std::int64_t col) {
    return row / kRows * bytes_per_panel(format, cols) + col / unit(format) * bytes_per_unit(format);
  }
};

static_assert(Panel16::bytes(kNvfp4, 16, 64) == 576 && Panel16::code_index(kNvfp4, 64, 1, 5) == (64 + 4 + 1) * 2 + 1);

}  // namespace finescale
