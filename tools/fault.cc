#include "fault.h"

#include "check/operands.h"

#include <finescale/access.h>

#include <fmt/format.h>

#include <algorithm>

namespace finescale::tools {
namespace {

constexpr std::uint64_t kAttempts = 4096;

// A neighbouring power of two of a scale, still a number.
std::uint32_t changed_scale(Element scale, std::uint32_t code) {
  const std::uint32_t exponent_bit = scale == Element::e4m3 ? 0x08u : scale == Element::f32 ? 0x00800000u : 0x01u;
  const std::uint32_t changed = code ^ exponent_bit;
  return is_finite(decode(scale, changed)) ? changed : code ^ (exponent_bit << 1);
}

std::int64_t global_index(const MutableMatrix& m, std::int64_t batch, std::int64_t row) {
  switch (m.global_kind) {
    case GlobalScale::per_batch: return batch;
    case GlobalScale::per_row: return batch * m.rows + row;
    default: return 0;
  }
}

// What a tile, block or code is worth before and after, to see that a change is one.
double sum_of_tile(const Matrix& m, const Change& change) {
  const bool block = change.kind == FaultKind::scale;
  const std::int64_t rows = block ? m.format.block_rows : change.kind == FaultKind::tile ? kTileRows : 1;
  const std::int64_t cols = block ? m.format.block_cols : change.kind == FaultKind::tile ? kTileCols : 1;
  double sum = 0;
  for (std::int64_t row = change.row; row < std::min(change.row + rows, m.rows); ++row) {
    for (std::int64_t col = change.col; col < std::min(change.col + cols, m.cols); ++col) {
      const float value = element_at(m, change.batch, row, col) * block_scale_at(m, change.batch, row, col);
      sum += static_cast<double>(value) * static_cast<double>(value) * (value < 0 ? 3 : 1);  // signs count
    }
  }
  return sum;
}

// Plain outputs have no scale: there a "scale" fault doubles what one block of 16 columns would hold.
void double_plain_block(const MutableMatrix& m, const Change& change) {
  for (std::int64_t col = change.col; col < std::min<std::int64_t>(change.col + 16, m.cols); ++col) {
    const float value = element_at(m, change.batch, change.row, col);
    set_code(m, change.batch, change.row, col, encode(m.format.element, 2 * value));
  }
}

}  // namespace

void Change::make(const MutableMatrix& given) const {
  const MutableMatrix m = with_strides(given);
  if (kind == FaultKind::code) set_code(m, batch, row, col, bits);
  if (kind == FaultKind::tile) {
    for (std::int64_t r = row; r < std::min(row + kTileRows, m.rows); ++r) {
      for (std::int64_t c = col; c < std::min(col + kTileCols, m.cols); ++c) set_code(m, batch, r, c, 0);
    }
  }
  if (kind != FaultKind::scale) return;
  if (m.format.has_scales()) {
    set_scale_code(m, batch, row, col, changed_scale(m.format.scale, scale_code_at(m, batch, row, col)));
  } else if (m.global != nullptr) {
    m.global[global_index(m, batch, row)] *= 2;
  } else {
    double_plain_block(m, *this);
  }
}

Change Change::seen_by_one_row() const { return {kind, 0, 0, col, bits}; }

Result<std::string> plant_in_output(FaultKind kind, const MutableMatrix& output, std::uint64_t seed) {
  const MutableMatrix m = with_strides(output);
  const bool anything = m.batch > 0 && m.rows > 0 && m.cols > 0;
  for (std::uint64_t attempt = 0; anything && attempt < kAttempts; ++attempt) {
    const auto pick = [&](std::int64_t count, std::uint64_t axis) {
      return static_cast<std::int64_t>(hash_bits(seed, 4 * attempt + axis) % static_cast<std::uint64_t>(count));
    };
    Change change{kind, pick(m.batch, 0), pick(m.rows, 1), pick(m.cols, 2)};
    const int width = bits(m.format.element);
    change.bits = static_cast<std::uint32_t>(hash_bits(seed, 4 * attempt + 3)) & (width == 32 ? ~0u : (1u << width) - 1);
    const float changed_value = decode(m.format.element, change.bits);
    const double before = sum_of_tile(m, change);
    const bool visible = kind == FaultKind::code
                             ? is_finite(changed_value) && changed_value != element_at(m, change.batch, change.row, change.col)
                             : before > 0;
    if (!visible) continue;
    change.make(m);
    return fmt::format("planted a {} fault in the output at batch {}, row {}, column {}",
                       kind == FaultKind::code    ? "code"
                       : kind == FaultKind::scale ? "scale"
                                                  : "tile",
                       change.batch, change.row, change.col);
  }
  return invalid_argument("--inject: no site in the output where this fault would change a value; use a larger problem");
}

}  // namespace finescale::tools
