#include "backends/cpu/row_reader.h"

#include <finescale/access.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

void read_elements(const Leaves& leaves, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count,
                   float* out) {
  const int width = bits(matrix.format.element);
  if (!is_prepared(matrix.codes) && matrix.col_stride == 1) {
    const auto place = code_place(matrix, batch, row, 0);  // a row of 4-bit codes starts on a whole byte
    const auto* codes = reinterpret_cast<const unsigned char*>(place.base) + place.index * width / 8;
    leaves.decode_run(matrix.format.element, codes, first, matrix.codes == CodeLayout::high_nibble_first, count, out);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) out[i] = element_at(matrix, batch, row, first + i);
}

}  // namespace

void read_row(const Leaves& leaves, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row, std::int64_t first,
              std::int64_t count, float* out) {
  read_elements(leaves, matrix, batch, row, first, count, out);
  if (!matrix.format.has_scales()) return;
  const std::int64_t block_cols = matrix.format.block_cols, end = first + count;
  for (std::int64_t col = first; col < end;) {
    const std::int64_t block_end = std::min(end, (col / block_cols + 1) * block_cols);
    const float scale = block_scale_at(matrix, batch, scale_row, col);
    for (; col < block_end; ++col) out[col - first] *= scale;
  }
}

bool is_panel(const Matrix& b) {
  const Format& format = b.format;
  if (static_cast<std::uint32_t>(b.codes) != Panel16::kId || !Panel16::supports(format)) return false;
  const bool element = format.element == Element::e2m1 || format.element == Element::e4m3 || format.element == Element::e5m2;
  const bool scale =
      format.scale == Element::none || format.scale == Element::e4m3 || format.scale == Element::e8m0 || format.scale == Element::f32;
  return element && scale && (!format.has_scales() || format.block_cols % 8 == 0) && kDepth % Panel16::unit(format) == 0;
}

PanelCodes panel_codes(const Matrix& b, std::int64_t batch, std::int64_t panel, std::int64_t first) {
  const std::int64_t unit_cols = Panel16::unit(b.format), unit_bytes = Panel16::bytes_per_unit(b.format);
  const std::byte* start = prepared_batch(b, batch) + panel * Panel16::bytes_per_panel(b.format, b.cols) + first / unit_cols * unit_bytes;
  return {reinterpret_cast<const unsigned char*>(start),
          unit_bytes,
          Panel16::scale_bytes_per_unit(b.format),
          unit_cols,
          b.format.has_scales() ? b.format.block_cols : unit_cols,
          b.format.element,
          b.format.scale};
}

void read_panel(const Leaves& leaves, const Matrix& b, std::int64_t batch, std::int64_t panel, std::int64_t first, std::int64_t count,
                float* out) {
  if (is_panel(b)) return leaves.decode_panel(panel_codes(b, batch, panel, first), count, out);
  float rows[kPanelRows][kDepth];
  for (std::int64_t lane = 0; lane < kPanelRows; ++lane) {
    const std::int64_t row = panel * kPanelRows + lane;
    if (row < b.rows) {
      read_row(leaves, b, batch, row, row, first, count, rows[lane]);
    } else {
      std::memset(rows[lane], 0, static_cast<std::size_t>(count) * sizeof(float));
    }
  }
  leaves.transpose(rows[0], kDepth, count, out);
}

}  // namespace finescale::cpu
