// storage(): the bytes behind a matrix, from its tags. Every sum and product is checked against int64 here, once, so that the
// index maps and with_strides need not.
#include <finescale/access.h>
#include <finescale/matrix.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "ops/validate.h"

namespace finescale {
namespace {

// An int64 that remembers whether anything on the way to it overflowed.
struct Checked {
  std::int64_t value = 0;
  bool overflowed = false;

  Checked(std::int64_t number) : value(number) {}
};

Checked operator+(Checked a, Checked b) {
  Checked sum = 0;
  sum.overflowed = __builtin_add_overflow(a.value, b.value, &sum.value) || a.overflowed || b.overflowed;
  return sum;
}

Checked operator*(Checked a, Checked b) {
  Checked product = 0;
  product.overflowed = __builtin_mul_overflow(a.value, b.value, &product.value) || a.overflowed || b.overflowed;
  return product;
}

Checked ceil_div(Checked value, std::int64_t by) {
  value.value = value.value / by + (value.value % by != 0 ? 1 : 0);
  return value;
}

Checked round_up(Checked value, std::int64_t to) { return ceil_div(value, to) * to; }

// Elements from the first to one past the last of a rows x cols view, neither of them 0.
Checked extent(Checked rows, Checked cols, Checked row_stride, Checked col_stride) {
  return (rows + -1) * row_stride + (cols + -1) * col_stride + 1;
}

Checked unless_packed(std::int64_t stride, Checked packed) { return stride == kPacked ? packed : Checked(stride); }

Checked data_bytes(const Matrix& m) {
  if (m.rows == 0 || m.cols == 0) return 0;
  const int width = bits(m.format.element);
  const std::int64_t codes_per_byte = width == 4 ? 2 : 1;
  const Checked row_stride = unless_packed(m.row_stride, round_up(extent(1, m.cols, 0, m.col_stride), codes_per_byte));
  const Checked codes = extent(m.rows, m.cols, row_stride, m.col_stride);
  const Checked batch_stride = unless_packed(m.batch_stride, round_up(codes, codes_per_byte));
  return ceil_div(((m.batch + Checked(-1)) * batch_stride + codes) * width, 8);
}

// Rows of scale_128x4_per_group: most where as many groups as can be hold one row more than a multiple of 128.
Checked per_group_rows(Checked rows, std::int64_t groups) {
  Checked padded = rows + Checked(127) * std::min(rows.value, groups);
  padded.value -= padded.value % 128;
  return padded;
}

Checked linear_scales(const Matrix& m, Checked rows, Checked cols) {
  const bool mn_major = m.scale_col_stride == kPacked && m.scale_row_stride == 1 && cols.value > 1;
  const Checked col_stride = unless_packed(m.scale_col_stride, mn_major ? round_up(rows, 4) : Checked(1));
  return extent(rows, cols, unless_packed(m.scale_row_stride, extent(1, cols, 0, col_stride)), col_stride);
}

Checked scale_bytes(const Matrix& m, std::int64_t groups) {
  if (!m.format.has_scales() || m.rows == 0 || m.cols == 0) return 0;
  const Checked rows = ceil_div(Checked(m.rows), m.format.block_rows), cols = ceil_div(Checked(m.cols), m.format.block_cols);
  Checked scales = 0;
  switch (m.scale_layout) {
    case ScaleLayout::linear: scales = linear_scales(m, rows, cols); break;
    case ScaleLayout::scale_128x4:
    case ScaleLayout::scale_8x4: scales = round_up(rows, tile_rows(m.scale_layout)) * round_up(cols, tile_cols(m.scale_layout)); break;
    case ScaleLayout::scale_128x4_per_group: scales = per_group_rows(rows, groups) * round_up(cols, 4); break;
  }
  const Checked batch_stride = unless_packed(m.scale_batch_stride, scales);
  return ((m.batch + Checked(-1)) * batch_stride + scales) * (bits(m.format.scale) / 8);
}

// The maps of prepared layouts are unchecked: they are asked only where kPreparedBytes an element, padded by
// kPreparedPadding rows and columns, fit; every listed layout stays below that.
Checked prepared_storage(const Matrix& m) {
  if (m.rows == 0 || m.cols == 0) return 0;
  const Checked most = (m.rows + Checked(kPreparedPadding)) * (m.cols + Checked(kPreparedPadding)) * kPreparedBytes;
  if (most.overflowed) return most;
  return Checked(prepared_bytes(m)) * (m.batch_stride == 0 ? 1 : m.batch);
}

}  // namespace

Result<Bytes> storage_of(std::string_view name, const Matrix& m, std::int64_t groups) {
  if (groups < 0) return invalid_argument(fmt::format("groups = {}: a count of groups is not negative", groups));
  if (m.batch == 0 || m.absent()) return Bytes{};
  const Checked data = is_prepared(m.codes) ? prepared_storage(m) : data_bytes(m);
  const Checked scales = is_prepared(m.codes) ? Checked(0) : scale_bytes(m, groups);
  if (data.overflowed || scales.overflowed) {
    return invalid_argument(fmt::format("{}: batch = {}, rows = {}, cols = {}: the {} take more than 2^63 - 1 bytes", name, m.batch, m.rows,
                                        m.cols, data.overflowed ? "codes" : "block scales"));
  }
  return Bytes{data.value, scales.value};
}

Result<Bytes> storage(const Matrix& shape, std::int64_t groups) {
  FINESCALE_TRY(validate_matrix("shape", shape));
  return storage_of("shape", shape, groups);
}

}  // namespace finescale
