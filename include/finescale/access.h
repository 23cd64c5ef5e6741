// Reading one element of any matrix through its maps: what the reference, the oracle and the generic kernels do.
// Slow and exact. Strides must be filled in (with_strides).
#pragma once

#include <finescale/matrix.h>

#include <cstddef>
#include <cstdint>

namespace finescale {

// Where a code or a block scale lies: a base pointer and an index in units of its own width.
template <class Byte>
struct Place {
  Byte* base = nullptr;
  std::int64_t index = 0;
};

template <class Byte, class Float>
FINESCALE_HD constexpr std::int64_t prepared_bytes(const BasicMatrix<Byte, Float>& matrix) {
  std::int64_t bytes = 0;
  PreparedLayouts::visit(matrix.codes, [&](auto layout) { bytes = layout.bytes(matrix.format, matrix.rows, matrix.cols); });
  return bytes;
}

// Every batch is the first one.
template <class Byte, class Float>
FINESCALE_HD constexpr bool is_broadcast(const BasicMatrix<Byte, Float>& matrix) {
  const bool scales_outside = matrix.format.has_scales() && !is_prepared(matrix.codes);
  return matrix.batch_stride == 0 && (!scales_outside || matrix.scale_batch_stride == 0);
}

// Start of a prepared batch. A batch stride of 0 broadcasts; prepared batches have no gaps.
template <class Byte, class Float>
FINESCALE_HD constexpr Byte* prepared_batch(const BasicMatrix<Byte, Float>& matrix, std::int64_t batch) {
  return matrix.data + (matrix.batch_stride == 0 ? 0 : batch * prepared_bytes(matrix));
}

template <class Byte, class Float>
FINESCALE_HD constexpr Place<Byte> code_place(const BasicMatrix<Byte, Float>& matrix, std::int64_t batch, std::int64_t row,
                                              std::int64_t col) {
  if (!is_prepared(matrix.codes)) {
    return {matrix.data, batch * matrix.batch_stride + linear_offset(row, col, matrix.row_stride, matrix.col_stride)};
  }
  Place<Byte> place{prepared_batch(matrix, batch), 0};
  PreparedLayouts::visit(matrix.codes, [&](auto layout) { place.index = layout.code_index(matrix.format, matrix.cols, row, col); });
  return place;
}

// `padded_row` is the row itself, but under scale_128x4_per_group the row counted with each earlier group padded to 128.
template <class Byte, class Float>
FINESCALE_HD constexpr Place<Byte> scale_place(const BasicMatrix<Byte, Float>& matrix, std::int64_t batch, std::int64_t padded_row,
                                               std::int64_t col) {
  if (is_prepared(matrix.codes)) {
    Place<Byte> place{prepared_batch(matrix, batch), 0};
    PreparedLayouts::visit(matrix.codes, [&](auto layout) {
      place.index = layout.scale_byte(matrix.format, matrix.cols, padded_row, col) / (bits(matrix.format.scale) / 8);
    });
    return place;
  }
  const std::int64_t scale_row = padded_row / matrix.format.block_rows, scale_col = col / matrix.format.block_cols;
  std::int64_t index = batch * matrix.scale_batch_stride;
  switch (matrix.scale_layout) {
    case ScaleLayout::linear: index += linear_offset(scale_row, scale_col, matrix.scale_row_stride, matrix.scale_col_stride); break;
    case ScaleLayout::scale_8x4: index += scale_8x4_offset(scale_row, scale_col, matrix.scale_cols()); break;
    case ScaleLayout::scale_128x4:
    case ScaleLayout::scale_128x4_per_group: index += scale_128x4_offset(scale_row, scale_col, matrix.scale_cols()); break;
  }
  return {matrix.scales, index};
}

FINESCALE_HD inline std::uint32_t code_at(const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const auto place = code_place(matrix, batch, row, col);
  return load_code(place.base, place.index, bits(matrix.format.element), matrix.codes == CodeLayout::high_nibble_first);
}

FINESCALE_HD inline void set_code(const MutableMatrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t col, std::uint32_t code) {
  const auto place = code_place(matrix, batch, row, col);
  store_code(place.base, place.index, bits(matrix.format.element), matrix.codes == CodeLayout::high_nibble_first, code);
}

FINESCALE_HD inline std::uint32_t scale_code_at(const Matrix& matrix, std::int64_t batch, std::int64_t padded_row, std::int64_t col) {
  const auto place = scale_place(matrix, batch, padded_row, col);
  return load_code(place.base, place.index, bits(matrix.format.scale), false);
}

FINESCALE_HD inline void set_scale_code(const MutableMatrix& matrix, std::int64_t batch, std::int64_t padded_row, std::int64_t col,
                                        std::uint32_t code) {
  const auto place = scale_place(matrix, batch, padded_row, col);
  store_code(place.base, place.index, bits(matrix.format.scale), false, code);
}

// The block scale, 1 where the format has none.
FINESCALE_HD inline float block_scale_at(const Matrix& matrix, std::int64_t batch, std::int64_t padded_row, std::int64_t col) {
  return matrix.format.has_scales() ? decode(matrix.format.scale, scale_code_at(matrix, batch, padded_row, col)) : 1.0f;
}

FINESCALE_HD inline float element_at(const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return decode(matrix.format.element, code_at(matrix, batch, row, col));
}

// How many global scales the matrix has.
template <class Byte, class Float>
FINESCALE_HD constexpr std::int64_t global_count(const BasicMatrix<Byte, Float>& matrix) {
  switch (matrix.global_kind) {
    case GlobalScale::none: break;
    case GlobalScale::one: return 1;
    case GlobalScale::per_batch: return matrix.batch;
    case GlobalScale::per_row: return matrix.batch * matrix.rows;
  }
  return 0;
}

// The global scale of a row, 1 where there is none.
FINESCALE_HD inline float global_at(const Matrix& matrix, std::int64_t batch, std::int64_t row) {
  switch (matrix.global_kind) {
    case GlobalScale::none: break;
    case GlobalScale::one: return matrix.global[0];
    case GlobalScale::per_batch: return matrix.global[batch];
    case GlobalScale::per_row: return matrix.global[batch * matrix.rows + row];
  }
  return 1.0f;
}

}  // namespace finescale
