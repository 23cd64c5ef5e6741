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

float& global_of(const MutableMatrix& m, std::int64_t batch, std::int64_t row) {
  switch (m.global_kind) {
    case GlobalScale::per_batch: return m.global[batch];
    case GlobalScale::per_row: return m.global[batch * m.rows + row];
    default: return m.global[0];
  }
}

bool scale_lies_in_codes(const MutableMatrix& m) { return !m.format.has_scales() && m.global == nullptr; }

}  // namespace

const char* fault_name(FaultKind kind) {
  const char* const names[] = {"no", "scale", "code", "tile"};
  return names[static_cast<int>(kind)];
}

void Change::make(const MutableMatrix& given) {
  const MutableMatrix m = with_strides(given);
  if (kind == FaultKind::scale && m.format.has_scales()) {
    old_scale_ = scale_code_at(m, batch, row, col);
    set_scale_code(m, batch, row, col, changed_scale(m.format.scale, old_scale_));
    return;
  }
  if (kind == FaultKind::scale && m.global != nullptr) {
    global_of(m, batch, row) *= 2;
    return;
  }
  old_codes_.clear();
  for (std::int64_t r = row; r < std::min(row + rows(), m.rows); ++r) {
    for (std::int64_t c = col; c < std::min(col + cols(), m.cols); ++c) {
      old_codes_.push_back(code_at(m, batch, r, c));
      const std::uint32_t doubled = encode(m.format.element, 2 * decode(m.format.element, old_codes_.back()));
      set_code(m, batch, r, c, kind == FaultKind::code ? new_code : kind == FaultKind::tile ? 0 : doubled);
    }
  }
}

void Change::undo(const MutableMatrix& given) const {
  const MutableMatrix m = with_strides(given);
  if (kind == FaultKind::scale && m.format.has_scales()) {
    set_scale_code(m, batch, row, col, old_scale_);
    return;
  }
  if (kind == FaultKind::scale && m.global != nullptr) {
    global_of(m, batch, row) /= 2;
    return;
  }
  auto old = old_codes_.begin();
  for (std::int64_t r = row; r < std::min(row + rows(), m.rows); ++r) {
    for (std::int64_t c = col; c < std::min(col + cols(), m.cols); ++c) set_code(m, batch, r, c, *old++);
  }
}

namespace {

// Does any element that the change covers have another value than before.
bool changes_a_value(const MutableMatrix& m, Change& change) {
  const std::int64_t rows = change.kind == FaultKind::tile ? kTileRows : change.kind == FaultKind::scale ? m.format.block_rows : 1;
  const std::int64_t cols = change.kind == FaultKind::tile ? kTileCols : scale_lies_in_codes(m) ? 16 : m.format.block_cols;
  std::vector<float> before;
  bool changed = false;
  for (const bool made : {false, true}) {
    std::size_t next = 0;
    for (std::int64_t r = change.row; r < std::min(change.row + rows, m.rows); ++r) {
      for (std::int64_t c = change.col; c < std::min(change.col + cols, m.cols); ++c, ++next) {
        const float value = element_at(m, change.batch, r, c) * block_scale_at(m, change.batch, r, c) * global_at(m, change.batch, r);
        if (!made) before.push_back(value);
        changed |= made && is_finite(value) && value != before[next];
      }
    }
    if (!made) change.make(m);
  }
  return changed;
}

}  // namespace

Result<std::string> plant_in_output(FaultKind kind, const MutableMatrix& output, std::uint64_t seed) {
  const MutableMatrix m = with_strides(output);
  const bool anything = m.batch > 0 && m.rows > 0 && m.cols > 0;
  const int width = bits(m.format.element);
  for (std::uint64_t attempt = 0; anything && attempt < kAttempts; ++attempt) {
    const auto pick = [&](std::int64_t count, std::uint64_t axis) {
      return static_cast<std::int64_t>(hash_bits(seed, 4 * attempt + axis) % static_cast<std::uint64_t>(count));
    };
    Change change;
    change.kind = kind;
    change.batch = pick(m.batch, 0), change.row = pick(m.rows, 1), change.col = pick(m.cols, 2);
    change.new_code = static_cast<std::uint32_t>(hash_bits(seed, 4 * attempt + 3)) & (width == 32 ? ~0u : (1u << width) - 1);
    if (!changes_a_value(m, change)) {
      change.undo(m);
      continue;
    }
    return fmt::format("planted a {} fault in the output at batch {}, row {}, column {}", fault_name(kind), change.batch, change.row,
                       change.col);
  }
  return invalid_argument("--inject: no site in the output where this fault would change a value; use a larger problem");
}

}  // namespace finescale::tools
