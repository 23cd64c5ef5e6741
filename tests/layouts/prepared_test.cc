// Every listed prepared layout with every listed format it takes: each code and each block scale has a place of its own
// inside bytes(), whatever the shape, and the layout keeps to what the list promises of it.
#include <finescale/formats/format.h>
#include <finescale/layouts/layout.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "layouts/occupancy.h"

namespace finescale {
namespace {

using test::Occupancy;

struct Shape {
  std::int64_t rows, cols;
};
constexpr Shape kShapes[] = {{1, 1}, {1, 2}, {16, 64}, {17, 63}, {15, 65}, {33, 127}, {129, 129}, {128, 16}, {5, 300}, {130, 257}};

// The fixed part of a layout's contract: bytes never shrink, stay below the listed bound, and are none for an empty matrix.
template <class Layout>
void expect_sizes(Layout layout, const Format& format) {
  EXPECT_EQ(layout.bytes(format, 0, 64), 0);
  EXPECT_EQ(layout.bytes(format, 64, 0), 0);
  for (const Shape& shape : kShapes) {
    const std::int64_t bytes = layout.bytes(format, shape.rows, shape.cols);
    EXPECT_LE(bytes, layout.bytes(format, shape.rows + 1, shape.cols));
    EXPECT_LE(bytes, layout.bytes(format, shape.rows, shape.cols + 1));
    EXPECT_LE(bytes, kPreparedBytes * (shape.rows + kPreparedPadding) * (shape.cols + kPreparedPadding));
  }
  const std::int64_t large = std::int64_t{1} << 24;
  EXPECT_LE(layout.bytes(format, large, large), kPreparedBytes * large * large);
}

// Codes and scales share one buffer: nibbles are the unit, so that no code lies on a scale either.
template <class Layout>
void expect_own_places(Layout layout, const Format& format, const Shape& shape) {
  const std::int64_t nibbles_of_code = bits(format.element) / 4, nibbles_of_scale = bits(format.scale) / 4;
  Occupancy nibbles(2 * layout.bytes(format, shape.rows, shape.cols));
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      const std::int64_t index = layout.code_index(format, shape.cols, row, col);
      ASSERT_TRUE(nibbles.claim(index * nibbles_of_code, nibbles_of_code)) << "code " << row << " " << col;
      if (!format.has_scales()) continue;
      const std::int64_t scale = layout.scale_byte(format, shape.cols, row, col);
      ASSERT_EQ(scale % (nibbles_of_scale / 2), 0) << "scale " << row << " " << col;
      const std::int64_t block_row = row / format.block_rows * format.block_rows, block_col = col / format.block_cols * format.block_cols;
      if (col != block_col) {
        ASSERT_EQ(scale, layout.scale_byte(format, shape.cols, row, block_col));
      } else if (row == block_row || scale != layout.scale_byte(format, shape.cols, block_row, col)) {  // each row may have a copy
        ASSERT_TRUE(nibbles.claim(2 * scale, nibbles_of_scale)) << "scale " << row << " " << col;
      }
    }
  }
}

TEST(PreparedLayouts, give_every_code_and_scale_its_own_place) {
  PreparedLayouts::for_each([](auto layout) {
    int taken = 0;
    for (const NamedFormat& row : kFormats) {
      if (!layout.supports(row.format)) continue;
      SCOPED_TRACE(std::string(layout.kName) + " " + std::string(row.name));
      ++taken;
      expect_sizes(layout, row.format);
      for (const Shape& shape : kShapes) expect_own_places(layout, row.format, shape);
    }
    EXPECT_GT(taken, 0) << layout.kName;
  });
}

TEST(PreparedLayouts, are_listed_once_and_found_by_id) {
  std::set<std::uint32_t> ids;
  std::set<std::string_view> names;
  PreparedLayouts::for_each([&](auto layout) {
    EXPECT_TRUE(ids.insert(layout.kId).second);
    EXPECT_TRUE(names.insert(layout.kName).second);
    const auto id = static_cast<CodeLayout>(layout.kId);
    EXPECT_TRUE(is_prepared(id));
    EXPECT_EQ(layout_name(id), layout.kName);
    EXPECT_TRUE(PreparedLayouts::visit(id, [&](auto found) { EXPECT_EQ(found.kId, layout.kId); }));
  });
  EXPECT_FALSE(PreparedLayouts::visit(CodeLayout::row_major, [](auto) { FAIL(); }));
  EXPECT_FALSE(is_prepared(CodeLayout::high_nibble_first));
}

// Panel16 by its description: lane = row, eight 4-bit or four 8-bit columns a vector, scales before the codes of a unit.
TEST(Panel16, golden_places) {
  EXPECT_EQ(Panel16::bytes(kNvfp4, 16, 64), 4 * 16 + 8 * 64);
  EXPECT_EQ(Panel16::scale_byte(kNvfp4, 64, 3, 47), 2 * 16 + 3);
  EXPECT_EQ(Panel16::code_index(kNvfp4, 64, 0, 0), 2 * 64);
  EXPECT_EQ(Panel16::code_index(kNvfp4, 64, 0, 4), 2 * 64 + 1);
  EXPECT_EQ(Panel16::code_index(kNvfp4, 64, 1, 9), 2 * (64 + 64 + 4 + 1));
  EXPECT_EQ(Panel16::code_index(kNvfp4, 128, 0, 64), 2 * (576 + 64));
  EXPECT_EQ(Panel16::code_index(kNvfp4, 128, 16, 0), 2 * (2 * 576 + 64));
  EXPECT_EQ(Panel16::bytes(kMxfp8E4m3, 1, 1), 2 * 16 + 64 * 16);
  EXPECT_EQ(Panel16::code_index(kMxfp8E4m3, 64, 2, 7), 32 + 64 + 8 + 3);
  EXPECT_EQ(Panel16::scale_byte(kFp8E4m3Block128, 256, 5, 200), 16 * 4 + 128 * 16 + 5 * 4);
}

}  // namespace
}  // namespace finescale
