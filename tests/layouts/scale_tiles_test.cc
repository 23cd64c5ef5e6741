// Tiled scale layouts: golden offsets and sizes, a second description of the tile, and that each map hands
// out every slot at most once and inside its bytes.
#include <finescale/layouts/scale_tiles.h>

#include <gtest/gtest.h>

#include <cstdint>

#include "layouts/occupancy.h"

namespace finescale {
namespace {

using test::Occupancy;

constexpr std::int64_t kRows[] = {0, 1, 3, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 255, 256, 257, 384};
constexpr std::int64_t kCols[] = {0, 1, 3, 4, 5, 8, 13, 96};

TEST(Scale128x4, golden_offsets) {
  constexpr struct {
    std::int64_t row, k, columns, offset;
  } kGolden[] = {{0, 0, 64, 0},     {1, 0, 64, 16},    {32, 0, 64, 4},       {33, 16, 64, 21},        {127, 48, 64, 511},
                 {128, 0, 64, 512}, {0, 64, 128, 512}, {128, 64, 128, 1536}, {40, 1520, 1536, 11911}, {359, 14320, 14336, 343679}};
  for (const auto& row : kGolden) EXPECT_EQ(scale_128x4_offset(row.row, row.k / 16, ceil_div(row.columns, 16)), row.offset);
}

TEST(Scale128x4, golden_sizes) {
  constexpr struct {
    std::int64_t rows, columns, bytes;
  } kGolden[] = {{1, 16, 512},      {128, 64, 512},     {129, 64, 1024},      {128, 80, 1024},
                 {41, 1536, 12288}, {360, 3072, 73728}, {360, 14336, 344064}, {3072, 14336, 2752512}};
  for (const auto& row : kGolden) EXPECT_EQ(scale_128x4_bytes(row.rows, ceil_div(row.columns, 16)), row.bytes);
}

// The tile as cuBLAS documents it: outer = row in the tile, inner = column in the tile, tiles along the columns first.
TEST(Scale128x4, equals_the_documented_tile) {
  for (const std::int64_t cols : kCols) {
    const std::int64_t padded_cols = round_up(cols, 4);
    for (std::int64_t row = 0; row < 300; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) {
        const std::int64_t outer = row % 128, inner = col % 4;
        const std::int64_t tile_start = ((col - inner) + (row / 128) * padded_cols) * 128;
        ASSERT_EQ(scale_128x4_offset(row, col, cols), tile_start + (outer % 32) * 16 + (outer / 32) * 4 + inner);
      }
    }
  }
}

template <class Offset, class Bytes>
void expect_bijection(Offset&& offset, Bytes&& bytes, std::int64_t tile_rows) {
  for (const std::int64_t rows : kRows) {
    for (const std::int64_t cols : kCols) {
      Occupancy slots(bytes(rows, cols));
      ASSERT_EQ(slots.units(), round_up(rows, tile_rows) * round_up(cols, 4));
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < cols; ++col)
          ASSERT_TRUE(slots.claim(offset(row, col, cols))) << row << " " << col << " of " << cols;
      }
      ASSERT_EQ(slots.claimed(), rows * cols);
    }
  }
}

TEST(Scale128x4, is_a_bijection) { expect_bijection(scale_128x4_offset, scale_128x4_bytes, 128); }
TEST(Scale8x4, is_a_bijection) { expect_bijection(scale_8x4_offset, scale_8x4_bytes, 8); }

TEST(Scale8x4, golden_offsets) {
  EXPECT_EQ(scale_8x4_offset(0, 3, 4), 3);
  EXPECT_EQ(scale_8x4_offset(1, 0, 4), 4);
  EXPECT_EQ(scale_8x4_offset(7, 3, 4), 31);
  EXPECT_EQ(scale_8x4_offset(0, 4, 5), 32);
  EXPECT_EQ(scale_8x4_offset(8, 0, 5), 64);
  EXPECT_EQ(scale_8x4_offset(9, 4, 5), 100);
}

// Rows of several groups, each padded to a tile by itself: the map takes the padded start of the group.
TEST(Scale128x4PerGroup, is_a_bijection) {
  constexpr std::int64_t kGroups[] = {0, 1, 127, 128, 0, 129, 300, 5};
  for (const std::int64_t cols : kCols) {
    std::int64_t padded_rows = 0;
    for (const std::int64_t rows : kGroups) padded_rows += round_up(rows, 128);
    Occupancy slots(scale_128x4_bytes(padded_rows, cols));
    std::int64_t start = 0;
    for (const std::int64_t rows : kGroups) {
      const std::int64_t start_byte = start * round_up(cols, 4);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < cols; ++col) {
          const std::int64_t offset = scale_128x4_offset(start + row, col, cols);
          ASSERT_EQ(offset, start_byte + scale_128x4_offset(row, col, cols));
          ASSERT_TRUE(slots.claim(offset));
        }
      }
      start += round_up(rows, 128);
    }
    ASSERT_EQ(slots.claimed(), 690 * cols);
  }
}

// The padded width gives the tile's place, not the logical one (3 and 5 columns).
TEST(Scale128x4, places_partial_columns_by_the_padded_width) {
  constexpr std::int64_t kSmall[] = {0, 1, 2, 16, 17, 18, 32, 33, 34};
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(scale_128x4_offset(i / 3, i % 3, 3), kSmall[i]);
  EXPECT_EQ(scale_128x4_bytes(3, 3), 512);
  EXPECT_EQ(scale_128x4_offset(31, 3, 5), 499);
  EXPECT_EQ(scale_128x4_offset(127, 3, 5), 511);
  EXPECT_EQ(scale_128x4_offset(0, 4, 5), 512);
  EXPECT_EQ(scale_128x4_offset(128, 0, 5), 1024);
  EXPECT_EQ(scale_128x4_offset(129, 4, 5), 1552);
  EXPECT_EQ(scale_128x4_bytes(130, 5), 2048);
}

}  // namespace
}  // namespace finescale
