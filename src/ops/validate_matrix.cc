// validate_matrix: the rules that a matrix obeys whatever its role. Sizes that overflow are storage()'s to refuse.
#include "ops/validate.h"
#include "ops/validate_operand.h"

#include <finescale/access.h>

#include <array>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

namespace finescale {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 61;  // twice it, and rounding it up to a tile, stay inside int64

bool is_value(Element element) {
  switch (element) {
    case Element::f32:
    case Element::f16:
    case Element::bf16:
    case Element::e4m3:
    case Element::e5m2:
    case Element::e2m1: return true;
    case Element::e8m0:
    case Element::none: break;
  }
  return false;
}

bool is_scale(Element element) {
  return element == Element::none || element == Element::e8m0 || (is_value(element) && element != Element::e2m1);
}

const char* format_fault(const Format& format) {
  if (!is_value(format.element)) return "its element is no encoding of values";
  if (!is_scale(format.scale)) return "its scale is no encoding of block scales";
  if (format.block_rows < 1 || format.block_cols < 1) return "a block has at least one row and one column";
  if (!format.has_scales() && (format.block_rows != 1 || format.block_cols != 1)) return "without block scales a block is 1x1";
  if (format.is_plain() && (format.has_scales() || format.global)) return "f32, f16 and bf16 elements have no scales";
  return nullptr;
}

Status validate_tags(std::string_view name, const Matrix& m) {
  if (const char* fault = format_fault(m.format)) return refused(name, "format", describe(m.format), fault);
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"batch", m.batch}, {"rows", m.rows}, {"cols", m.cols}};
  for (const auto& [field, size] : sizes) {
    if (size < 0) return refused(name, field, size, "a size is not negative");
    if (size > kLargestSize) return refused(name, field, size, "a size is at most 2^61");
  }
  if (m.alignment < 1 || !std::has_single_bit(static_cast<std::uint32_t>(m.alignment))) {
    return refused(name, "alignment", m.alignment, "must be a power of two, in bytes");
  }
  if (m.global_kind > GlobalScale::per_row) {
    return refused(name, "global_kind", static_cast<std::uint32_t>(m.global_kind), "must be none, one, per_batch or per_row");
  }
  const std::pair<std::string_view, std::int64_t> strides[] = {{"row_stride", m.row_stride},
                                                               {"batch_stride", m.batch_stride},
                                                               {"scale_row_stride", m.scale_row_stride},
                                                               {"scale_col_stride", m.scale_col_stride},
                                                               {"scale_batch_stride", m.scale_batch_stride}};
  for (const auto& [field, stride] : strides) {
    if (stride < kPacked) return refused(name, field, stride, "a stride is not negative (kPacked = -1 stands for no gaps)");
  }
  if (m.col_stride < 0) return refused(name, "col_stride", m.col_stride, "a stride is not negative");
  return {};
}

// One dimension of a strided view, kPacked already resolved.
struct Dimension {
  std::string_view field;
  std::int64_t size, stride;
};

// Dimensions of more than one element, the smallest stride first, must each step over all that lies inside; 0 broadcasts.
// Arithmetic that overflows ends the check: the sizes are then refused by storage().
Status validate_nesting(std::string_view name, std::string_view what, std::span<Dimension> dimensions) {
  for (std::size_t i = 1; i < dimensions.size(); ++i) {
    for (std::size_t k = i; k > 0 && dimensions[k].stride < dimensions[k - 1].stride; --k) std::swap(dimensions[k], dimensions[k - 1]);
  }
  std::int64_t inside = 1;
  for (const Dimension& d : dimensions) {
    if (d.size <= 1 || d.stride == 0) continue;
    if (d.stride < inside) {
      return refused(name, d.field, d.stride, fmt::format("{} inside it need at least {}, or they overlap", what, inside));
    }
    std::int64_t span = 0;
    if (__builtin_mul_overflow(d.size - 1, d.stride, &span) || __builtin_add_overflow(inside, span, &inside)) return {};
  }
  return {};
}

// The stride of a matrix without gaps: what one row takes. -1: it overflows.
std::int64_t packed_stride(std::int64_t cols, std::int64_t col_stride) {
  std::int64_t extent = 0;
  if (cols == 0) return 0;
  if (__builtin_mul_overflow(cols - 1, col_stride, &extent) || __builtin_add_overflow(extent, 1, &extent)) return -1;
  return extent;
}

// The strides of one view, a packed batch stride left out: it steps over what lies inside by itself. Without elements any are free.
Status validate_view(std::string_view name, std::string_view what, Dimension row, Dimension col, Dimension batch) {
  if (row.size == 0 || col.size == 0 || batch.size == 0) return {};
  if (row.stride == kPacked) row.stride = packed_stride(col.size, col.stride);
  if (row.stride < 0) return {};
  if (batch.stride == kPacked) batch.size = 1;
  Dimension dimensions[] = {row, col, batch};
  return validate_nesting(name, what, dimensions);
}

Status validate_code_strides(std::string_view name, const Matrix& m) {
  if (m.col_stride != 1 && !m.format.is_plain()) {
    return refused(name, "col_stride", m.col_stride, fmt::format("must be 1 for {} codes: K is contiguous", describe(m.format)));
  }
  if (bits(m.format.element) == 4) {
    for (const auto& [field, stride] : {std::pair{"row_stride", m.row_stride}, std::pair{"batch_stride", m.batch_stride}}) {
      if (stride != kPacked && stride % 2 != 0) return refused(name, field, stride, "must be even: two 4-bit codes share a byte");
    }
  }
  if (m.row_stride > 0 && m.col_stride == 1 && m.rows > 1 && m.row_stride < m.cols) {
    const bool transposed = m.format.is_plain() && m.row_stride == 1;
    return refused(name, "row_stride", m.row_stride,
                   fmt::format("a row of cols = {} {} codes needs at least {} elements{}", m.cols, describe(m.format), m.cols,
                               transposed ? " (a transposed view has col_stride = its row length)" : ""));
  }
  return validate_view(name, "the elements", {"row_stride", m.rows, m.row_stride}, {"col_stride", m.cols, m.col_stride},
                       {"batch_stride", m.batch, m.batch_stride});
}

Status validate_tiled_scales(std::string_view name, const Matrix& m) {
  const auto layout = layout_name(m.scale_layout);
  if (bits(m.format.scale) != 8) {
    return refused(name, "scale_layout", layout, fmt::format("is for one-byte scales; those of {} are wider", describe(m.format)));
  }
  if (m.scale_layout == ScaleLayout::scale_128x4_per_group && m.format.block_rows != 1) {
    return refused(name, "scale_layout", layout, "is for formats whose blocks lie in one row");
  }
  for (const auto& [field, stride, own] : {std::tuple{"scale_row_stride", m.scale_row_stride, m.scale_cols()},
                                           std::tuple{"scale_col_stride", m.scale_col_stride, std::int64_t{1}}}) {
    if (stride != kPacked && stride != own) return refused(name, field, stride, fmt::format("is for linear scales; {} has none", layout));
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(round_up(m.scale_rows(), tile_rows(m.scale_layout)), round_up(m.scale_cols(), tile_cols(m.scale_layout)),
                             &bytes))
    return {};
  if (m.batch > 1 && m.scale_batch_stride > 0 && m.scale_batch_stride < bytes) {
    return refused(name, "scale_batch_stride", m.scale_batch_stride,
                   fmt::format("each batch of {} scales is padded by itself and takes {} bytes", layout, bytes));
  }
  return {};
}

Status validate_scales_layout(std::string_view name, const Matrix& m) {
  if (m.scale_layout > ScaleLayout::scale_128x4_per_group) {
    return refused(name, "scale_layout", static_cast<std::uint32_t>(m.scale_layout), "is not a known layout of block scales");
  }
  if (!m.format.has_scales()) return {};
  if (is_tiled(m.scale_layout)) return validate_tiled_scales(name, m);
  const std::int64_t rows = m.scale_rows(), cols = m.scale_cols();
  const bool mn_major = m.scale_col_stride == kPacked && m.scale_row_stride == 1 && cols > 1;
  const std::int64_t col_stride = m.scale_col_stride != kPacked ? m.scale_col_stride : mn_major ? round_up(rows, 4) : 1;
  return validate_view(name, "the block scales", {"scale_row_stride", rows, m.scale_row_stride}, {"scale_col_stride", cols, col_stride},
                       {"scale_batch_stride", m.batch, m.scale_batch_stride});
}

Status validate_prepared(std::string_view name, const Matrix& m) {
  bool takes_format = false;
  if (!PreparedLayouts::visit(m.codes, [&](auto layout) { takes_format = layout.supports(m.format); })) {
    return refused(name, "codes", static_cast<std::uint32_t>(m.codes), "is not a known prepared layout");
  }
  if (!takes_format) return refused(name, "codes", layout_name(m.codes), fmt::format("does not take {}", describe(m.format)));
  if (m.col_stride != 1) return refused(name, "col_stride", m.col_stride, "must be 1 in a prepared layout");
  return {};
}

}  // namespace

std::string describe(const Format& format) {
  const auto name = format_name(format);
  if (name != "unnamed") return std::string(name);
  constexpr std::array<std::string_view, 8> kElements = {"none", "f32", "f16", "bf16", "e4m3", "e5m2", "e2m1", "e8m0"};
  const auto element = [&](Element e) {
    return static_cast<std::size_t>(e) < kElements.size() ? kElements[static_cast<std::size_t>(e)] : "unknown";
  };
  return fmt::format("{{{}, {} scales, {}x{} blocks}}", element(format.element), element(format.scale), format.block_rows,
                     format.block_cols);
}

std::string_view describe(GlobalScale kind) {
  switch (kind) {
    case GlobalScale::none: return "none";
    case GlobalScale::one: return "one";
    case GlobalScale::per_batch: return "per_batch";
    case GlobalScale::per_row: return "per_row";
  }
  return "unknown";
}

Status validate_matrix(std::string_view name, const Matrix& m) {
  if (m.absent()) return {};
  FINESCALE_TRY(validate_tags(name, m));
  if (is_prepared(m.codes)) return validate_prepared(name, m);
  if (m.codes > CodeLayout::high_nibble_first) {
    return refused(name, "codes", static_cast<std::uint32_t>(m.codes), "is not a known layout of codes");
  }
  if (m.codes == CodeLayout::high_nibble_first && bits(m.format.element) != 4) {
    return refused(name, "codes", layout_name(m.codes), fmt::format("is for 4-bit codes; those of {} have no nibbles", describe(m.format)));
  }
  FINESCALE_TRY(validate_code_strides(name, m));
  return validate_scales_layout(name, m);
}

}  // namespace finescale
