// Matrix: the one operand of every op. A tagged view: format, layouts, shape, strides, pointers; it owns nothing.
//
//   X[b,i,j] = decode(code[b,i,j]) * block_scale[b, i / block_rows, j / block_cols] * global
//
// Every scale is a decode multiplier. Trivially copyable and standard layout, so that a C struct can be the same bytes.
#pragma once

#include <finescale/formats/format.h>
#include <finescale/layouts/layout.h>
#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace finescale {

// How many global scales there are and what each belongs to; stated, never guessed from a count.
//   one: global[0]; per_batch: global[b] (per group of a grouped GEMM); per_row: global[b * rows + i].
enum class GlobalScale : std::uint32_t { none, one, per_batch, per_row };

inline constexpr std::int64_t kPacked = -1;  // the stride of a matrix without gaps; 0 is a legal stride and broadcasts

template <class Byte, class Float>
struct BasicMatrix {
  Format format{};
  std::int64_t batch = 1, rows = 0, cols = 0;
  // In elements, never bytes. 4-bit codes: even row and batch strides. col_stride other than 1 only for f32, f16, bf16.
  std::int64_t row_stride = kPacked, col_stride = 1, batch_stride = kPacked;
  // In scales; row and column strides of ScaleLayout::linear only. Packed is K-major; with a row stride of 1 it is
  // MN-major, the column stride the rows rounded up to 4.
  std::int64_t scale_row_stride = kPacked, scale_col_stride = kPacked, scale_batch_stride = kPacked;
  CodeLayout codes = CodeLayout::row_major;  // a prepared layout keeps the block scales in `data` too
  ScaleLayout scale_layout = ScaleLayout::linear;
  GlobalScale global_kind = GlobalScale::none;
  std::int32_t alignment = 16;  // bytes, promised for data and scales; kernels are chosen by it, pointers only checked against it
  Byte* data = nullptr;
  Byte* scales = nullptr;
  Float* global = nullptr;

  template <class B = Byte>
  requires(!std::is_const_v<B>) FINESCALE_HD constexpr operator BasicMatrix<const B, const Float>() const {
    return {format,
            batch,
            rows,
            cols,
            row_stride,
            col_stride,
            batch_stride,
            scale_row_stride,
            scale_col_stride,
            scale_batch_stride,
            codes,
            scale_layout,
            global_kind,
            alignment,
            data,
            scales,
            global};
  }

  // Blocks along the columns and along the rows of one batch.
  FINESCALE_HD constexpr std::int64_t scale_cols() const { return ceil_div(cols, format.block_cols); }
  FINESCALE_HD constexpr std::int64_t scale_rows() const { return ceil_div(rows, format.block_rows); }
  FINESCALE_HD constexpr bool absent() const { return format.element == Element::none; }
};

using Matrix = BasicMatrix<const std::byte, const float>;
using MutableMatrix = BasicMatrix<std::byte, float>;
static_assert(std::is_trivially_copyable_v<Matrix> && std::is_standard_layout_v<Matrix> && std::is_aggregate_v<Matrix>);

// The same matrix with every kPacked stride replaced by its number. Shapes must have passed validation (no overflow).
template <class Byte, class Float>
FINESCALE_HD constexpr BasicMatrix<Byte, Float> with_strides(BasicMatrix<Byte, Float> matrix) {
  const std::int64_t codes_per_byte = bits(matrix.format.element) == 4 ? 2 : 1;
  if (matrix.row_stride == kPacked) matrix.row_stride = round_up(linear_extent(1, matrix.cols, 0, matrix.col_stride), codes_per_byte);
  if (matrix.batch_stride == kPacked) {
    matrix.batch_stride = round_up(linear_extent(matrix.rows, matrix.cols, matrix.row_stride, matrix.col_stride), codes_per_byte);
  }
  if (matrix.scale_col_stride == kPacked) {
    const bool mn_major = matrix.scale_row_stride == 1 && matrix.scale_cols() > 1;
    matrix.scale_col_stride = mn_major ? round_up(matrix.scale_rows(), 4) : 1;
  }
  if (matrix.scale_row_stride == kPacked) matrix.scale_row_stride = linear_extent(1, matrix.scale_cols(), 0, matrix.scale_col_stride);
  if (matrix.scale_batch_stride == kPacked) {
    matrix.scale_batch_stride =
        matrix.scale_layout == ScaleLayout::linear
            ? linear_extent(matrix.scale_rows(), matrix.scale_cols(), matrix.scale_row_stride, matrix.scale_col_stride)
            : padded_scales(matrix.scale_layout, matrix.scale_rows(), matrix.scale_cols());
  }
  return matrix;
}

struct Bytes {
  std::int64_t data = 0, scales = 0;
};

// Bytes that the buffers of a matrix must hold, from its tags alone (pointers may be null). Any layout, prepared ones
// included; for scale_128x4_per_group the bytes that any routing over `groups` groups may need.
// invalid_argument: a shape, stride or layout that cannot be; the sentence names it.
Result<Bytes> storage(const Matrix& shape, std::int64_t groups = 1);

}  // namespace finescale
