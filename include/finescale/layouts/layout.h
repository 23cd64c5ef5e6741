// The layouts by name, and the list of prepared ones. A prepared layout is a struct of constexpr maps (layouts/prepared/);
// to add one, add its header and its name to PreparedLayouts.
#pragma once

#include <finescale/layouts/linear.h>
#include <finescale/layouts/packed_codes.h>
#include <finescale/layouts/prepared/panel16.h>
#include <finescale/layouts/scale_tiles.h>

#include <cstdint>
#include <string_view>

namespace finescale {

enum class CodeLayout : std::uint32_t { row_major, high_nibble_first, first_prepared = 256 };
enum class ScaleLayout : std::uint32_t { linear, scale_128x4, scale_8x4, scale_128x4_per_group };

template <class... Layouts>
struct LayoutList {
  // Calls visitor(layout struct) for the prepared layout with that id; false where there is none.
  template <class Visitor>
  FINESCALE_HD static constexpr bool visit(CodeLayout id, Visitor&& visitor) {
    return ((static_cast<std::uint32_t>(id) == Layouts::kId ? (visitor(Layouts{}), true) : false) || ...);
  }
  template <class Visitor>
  static constexpr void for_each(Visitor&& visitor) {
    (visitor(Layouts{}), ...);
  }
};

using PreparedLayouts = LayoutList<Panel16>;

// No prepared layout takes more bytes than kPreparedBytes (rows + kPreparedPadding) (cols + kPreparedPadding) a batch.
inline constexpr std::int64_t kPreparedBytes = 8, kPreparedPadding = 4096;

FINESCALE_HD constexpr bool is_prepared(CodeLayout layout) { return layout >= CodeLayout::first_prepared; }
FINESCALE_HD constexpr bool is_tiled(ScaleLayout layout) { return layout != ScaleLayout::linear; }

// Rows and columns of a tile of a tiled layout: each batch is padded to whole ones. Linear scales have no padding: 1.
FINESCALE_HD constexpr std::int64_t tile_rows(ScaleLayout layout) {
  switch (layout) {
    case ScaleLayout::linear: break;
    case ScaleLayout::scale_8x4: return 8;
    case ScaleLayout::scale_128x4:
    case ScaleLayout::scale_128x4_per_group: return 128;
  }
  return 1;
}
FINESCALE_HD constexpr std::int64_t tile_cols(ScaleLayout layout) { return is_tiled(layout) ? 4 : 1; }

// Scales of a batch of rows x cols in a tiled layout, padding included.
FINESCALE_HD constexpr std::int64_t padded_scales(ScaleLayout layout, std::int64_t rows, std::int64_t cols) {
  return round_up(rows, tile_rows(layout)) * round_up(cols, tile_cols(layout));
}

constexpr std::string_view layout_name(CodeLayout layout) {
  std::string_view name = layout == CodeLayout::row_major           ? "row_major"
                          : layout == CodeLayout::high_nibble_first ? "high_nibble_first"
                                                                    : "unknown";
  PreparedLayouts::for_each([&](auto prepared) {
    if (static_cast<std::uint32_t>(layout) == prepared.kId) name = prepared.kName;
  });
  return name;
}

constexpr std::string_view layout_name(ScaleLayout layout) {
  switch (layout) {
    case ScaleLayout::linear: return "linear";
    case ScaleLayout::scale_128x4: return "scale_128x4";
    case ScaleLayout::scale_8x4: return "scale_8x4";
    case ScaleLayout::scale_128x4_per_group: return "scale_128x4_per_group";
  }
  return "unknown";
}

}  // namespace finescale
