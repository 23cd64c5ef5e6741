#include <finescale/validate_scales.h>

#include "ops/validate_operand.h"

#include <finescale/access.h>

#include <algorithm>

namespace finescale {
namespace {

struct Block {
  std::int64_t batch, row, col;
};

bool has_codes(const Matrix& m, const Block& block) {
  const std::uint32_t magnitude = (1u << (bits(m.format.element) - 1)) - 1;
  for (std::int64_t r = block.row; r < std::min<std::int64_t>(block.row + m.format.block_rows, m.rows); ++r) {
    for (std::int64_t c = block.col; c < std::min<std::int64_t>(block.col + m.format.block_cols, m.cols); ++c) {
      if ((code_at(m, block.batch, r, c) & magnitude) != 0) return true;
    }
  }
  return false;
}

const char* scale_fault(const Matrix& m, const Block& block, std::uint32_t code) {
  const Element scale = m.format.scale;
  if (scale != Element::e8m0 && (code >> (bits(scale) - 1)) != 0) return "its sign bit is set";
  const float value = decode(scale, code);
  if (is_nan(value)) return "it is NaN";
  if (!is_finite(value)) return "it is infinite";
  return value == 0.0f && has_codes(m, block) ? "it is zero over codes that are not" : nullptr;
}

}  // namespace

Status validate_scales(std::string_view name, const Matrix& given) {
  FINESCALE_TRY(validate_operand(name, given, Access::read, PerGroup::allowed));
  const Matrix m = with_strides(given);
  if (!m.format.has_scales()) return {};
  if (!is_prepared(m.codes) && m.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return unsupported(fmt::format("{}.scale_layout = {}: its map needs the offsets of the groups", name, layout_name(m.scale_layout)));
  }
  const bool empty = m.batch == 0 || m.rows == 0 || m.cols == 0;
  if (!empty && m.data == nullptr) return invalid_argument(fmt::format("{}.data is null: the matrix is not empty", name));
  if (!empty && !is_prepared(m.codes) && m.scales == nullptr) {
    return invalid_argument(fmt::format("{}.scales is null: the matrix is not empty", name));
  }
  for (Block block{}; block.batch < m.batch; ++block.batch) {
    for (block.row = 0; block.row < m.rows; block.row += m.format.block_rows) {
      for (block.col = 0; block.col < m.cols; block.col += m.format.block_cols) {
        const std::uint32_t code = scale_code_at(m, block.batch, block.row, block.col);
        const char* fault = scale_fault(m, block, code);
        if (fault == nullptr) continue;
        return invalid_argument(fmt::format("{}.scales: the scale 0x{:02X} of the block at batch {}, row {}, column {}: {}", name, code,
                                            block.batch, block.row, block.col, fault));
      }
    }
  }
  return {};
}

}  // namespace finescale
