// Codes and block scales into panel16, a panel of 16 rows at a time: 32 bits of a row, 8 columns of 4-bit or 4 of 8-bit codes,
// become one lane. What belongs to no element is zero.
#include "backends/cpu/conversion_drivers.h"
#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/parallel.h"

#include <finescale/access.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

// The four nibbles of `low` to the low halves of four bytes.
constexpr std::uint32_t spread(std::uint32_t low) {
  low = (low | low << 8) & 0x00FF00FFu;
  return (low | low << 4) & 0x0F0F0F0Fu;
}

// Eight packed codes to a lane: byte j holds code j in its low and code j + 4 in its high nibble.
constexpr std::uint32_t lane_of(std::uint32_t packed) { return spread(packed & 0xFFFFu) | spread(packed >> 16) << 4; }
static_assert(lane_of(0x76543210u) == 0x73625140u);

constexpr std::uint32_t exchange_nibbles(std::uint32_t word) { return (word & 0x0F0F0F0Fu) << 4 | (word >> 4 & 0x0F0F0F0Fu); }

// The lanes of one row: `in` is its first byte, `out` its lane in the panel's first unit.
void prepare_codes(const PrepareProblem& problem, const unsigned char* in, unsigned char* out) {
  const Format& format = problem.to.format;
  const bool four_bits = format.element == Element::e2m1;
  const std::int64_t lane_cols = four_bits ? 8 : 4, unit = Panel16::unit(format), cols = problem.to.cols;
  for (std::int64_t col = 0; col < cols; col += lane_cols) {
    std::uint32_t word = 0;
    const std::int64_t codes = std::min(lane_cols, cols - col);
    std::memcpy(&word, in + (four_bits ? col / 2 : col), static_cast<std::size_t>(four_bits ? (codes + 1) / 2 : codes));
    if (four_bits) {
      if (problem.from.codes == CodeLayout::high_nibble_first) word = exchange_nibbles(word);
      if (codes < lane_cols) word &= (1u << 4 * codes) - 1;  // an unused nibble may hold anything
      word = lane_of(word);
    }
    const std::int64_t at =
        col / unit * Panel16::bytes_per_unit(format) + Panel16::scale_bytes_per_unit(format) + col % unit / lane_cols * 64;
    std::memcpy(out + at, &word, sizeof word);
  }
}

void prepare_row(const PrepareProblem& problem, std::int64_t batch, std::int64_t row) {
  const Matrix& from = problem.from;
  const MutableMatrix& to = problem.to;
  const int width = bits(to.format.element);
  if (is_prepared(from.codes)) {
    for (std::int64_t col = 0; col < to.cols; ++col) set_code(to, batch, row, col, code_at(from, batch, row, col));
  } else {
    const auto place = code_place(from, batch, row, 0);
    auto* panel =
        reinterpret_cast<unsigned char*>(prepared_batch(to, batch)) + row / kPanelRows * Panel16::bytes_per_panel(to.format, to.cols);
    prepare_codes(problem, reinterpret_cast<const unsigned char*>(place.base) + place.index * width / 8, panel + row % kPanelRows * 4);
  }
  if (!to.format.has_scales()) return;
  // A block of several rows repeats its scale for each row.
  for (std::int64_t col = 0; col < to.cols; col += to.format.block_cols) {
    set_scale_code(to, batch, row, col, scale_code_at(from, batch, row, col));
  }
}

}  // namespace

Refusal prepare_supports(const PrepareProblem& problem, const DeviceInfo&) {
  if (static_cast<std::uint32_t>(problem.to.codes) != Panel16::kId) {
    return {"to.codes must be panel16", static_cast<std::int64_t>(problem.to.codes), Panel16::kId};
  }
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return {"scale_128x4_per_group needs a routing, which prepare has none of"};
  }
  return {};
}

Status prepare_run(const PrepareProblem& problem, const Choice&, const Execution& execution) {
  const MutableMatrix& to = problem.to;
  const std::int64_t batches = to.batch_stride == 0 && to.batch != 0 ? 1 : to.batch, panels = ceil_div(to.rows, kPanelRows);
  const std::int64_t panel_bytes = Panel16::bytes_per_panel(to.format, to.cols);
  parallel_for(execution, batches * panels, [&](std::int64_t i) {
    const std::int64_t batch = i / panels, panel = i % panels;
    if (panel_bytes != 0) std::memset(prepared_batch(to, batch) + panel * panel_bytes, 0, static_cast<std::size_t>(panel_bytes));
    for (std::int64_t row = panel * kPanelRows; row < std::min(to.rows, (panel + 1) * kPanelRows); ++row) prepare_row(problem, batch, row);
  });
  return {};
}

}  // namespace finescale::cpu
