// storage(): golden sizes, agreement with the maps that read the buffers (access.h), broadcasts, padding a batch or a group,
// and refusals where the sizes do not fit int64.
#include <finescale/access.h>
#include <finescale/matrix.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "layouts/occupancy.h"

namespace finescale {
namespace {

using test::Occupancy;
using testing::HasSubstr;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

void expect_storage(const Matrix& matrix, std::int64_t data, std::int64_t scales, std::int64_t groups = 1) {
  const auto bytes = storage(matrix, groups);
  ASSERT_TRUE(bytes) << bytes.status().sentence;
  EXPECT_EQ(bytes->data, data);
  EXPECT_EQ(bytes->scales, scales);
}

TEST(Storage, golden_sizes) {
  expect_storage({.format = kF32, .rows = 3, .cols = 5}, 60, 0);
  expect_storage({.format = kBf16, .batch = 2, .rows = 3, .cols = 5}, 60, 0);
  expect_storage({.format = kNvfp4, .rows = 4, .cols = 64}, 128, 16);
  expect_storage({.format = kNvfp4, .rows = 3, .cols = 33}, 34 + 17, 9);  // a row is 17 bytes, the last nibble counts
  expect_storage({.format = kMxfp4, .rows = 2, .cols = 100}, 100, 8);
  expect_storage({.format = kMxfp8E5m2, .rows = 2, .cols = 100}, 200, 8);
  expect_storage({.format = kFp8E4m3Row128, .rows = 2, .cols = 129}, 258, 16);
  expect_storage({.format = kFp8E4m3Block128, .rows = 129, .cols = 257}, 129 * 257, 2 * 3 * 4);
  expect_storage({.format = kFp8E4m3Tensor, .rows = 2, .cols = 3}, 6, 0);
  expect_storage({.format = kFp4Tensor, .rows = 2, .cols = 4}, 4, 0);
}

TEST(Storage, tiled_scales_pad_each_batch_by_itself) {
  expect_storage({.format = kNvfp4, .batch = 2, .rows = 16, .cols = 128, .scale_layout = ScaleLayout::scale_128x4}, 2048, 2 * 1024);
  expect_storage({.format = kMxfp8E4m3, .batch = 2, .rows = 16, .cols = 128, .scale_layout = ScaleLayout::scale_128x4}, 4096, 2 * 512);
  expect_storage({.format = kNvfp4, .batch = 3, .rows = 9, .cols = 80, .scale_layout = ScaleLayout::scale_8x4}, 3 * 360, 3 * 16 * 8);
  expect_storage(
      {.format = kNvfp4, .batch = 2, .rows = 1, .cols = 16, .scale_batch_stride = 4096, .scale_layout = ScaleLayout::scale_128x4}, 16,
      4096 + 512);
}

TEST(Storage, strides_leave_gaps_after_all_but_the_last) {
  expect_storage({.format = kNvfp4, .rows = 3, .cols = 64, .row_stride = 128}, 64 * 2 + 32, 12);
  expect_storage({.format = kF32, .batch = 2, .rows = 3, .cols = 4, .row_stride = 8, .batch_stride = 100}, 4 * (100 + 20), 0);
  expect_storage({.format = kF32, .rows = 3, .cols = 4, .row_stride = 1, .col_stride = 3}, 48, 0);
  expect_storage({.format = kNvfp4, .rows = 3, .cols = 64, .scale_row_stride = 16}, 96, 36);
  expect_storage({.format = kFp8E4m3Row128, .rows = 5, .cols = 256, .scale_row_stride = 1}, 1280, 4 * (8 + 5));  // MN-major, columns of 8
  expect_storage({.format = kFp8E4m3Row128, .rows = 5, .cols = 256, .scale_row_stride = 1, .scale_col_stride = 5}, 1280, 40);
}

TEST(Storage, stride_zero_broadcasts) {
  expect_storage({.format = kBf16, .batch = 7, .rows = 3, .cols = 4, .batch_stride = 0}, 24, 0);
  expect_storage({.format = kF32, .batch = 7, .rows = 100, .cols = 4, .row_stride = 0, .batch_stride = 0}, 16, 0);
  expect_storage({.format = kNvfp4, .batch = 7, .rows = 2, .cols = 32, .batch_stride = 0, .scale_batch_stride = 0}, 32, 4);
  expect_storage({.format = kNvfp4,
                  .batch = 7,
                  .rows = 2,
                  .cols = 32,
                  .batch_stride = 0,
                  .scale_batch_stride = 0,
                  .scale_layout = ScaleLayout::scale_128x4},
                 32, 512);
  expect_storage({.format = kNvfp4, .batch = 7, .rows = 16, .cols = 64, .batch_stride = 0, .codes = CodeLayout{Panel16::kId}}, 576, 0);
}

TEST(Storage, empty_and_absent_matrices_need_nothing) {
  expect_storage({}, 0, 0);
  expect_storage({.format = kNvfp4, .batch = 0, .rows = 3, .cols = 64}, 0, 0);
  expect_storage({.format = kNvfp4, .batch = 5, .rows = 0, .cols = 64}, 0, 0);
  expect_storage({.format = kNvfp4, .batch = 5, .rows = 3, .cols = 0, .scale_layout = ScaleLayout::scale_128x4}, 0, 0);
  expect_storage({.format = kNvfp4, .rows = 0, .cols = 64, .scale_layout = ScaleLayout::scale_128x4_per_group}, 0, 0, 8);
  expect_storage({.format = kNvfp4, .rows = 0, .cols = 64, .codes = CodeLayout{Panel16::kId}}, 0, 0);
}

TEST(Storage, prepared_matrices_keep_their_scales_with_their_codes) {
  PreparedLayouts::for_each([](auto layout) {
    for (const NamedFormat& row : kFormats) {
      if (!layout.supports(row.format)) continue;
      const Matrix matrix{.format = row.format, .batch = 3, .rows = 21, .cols = 130, .codes = CodeLayout{layout.kId}};
      expect_storage(matrix, 3 * layout.bytes(row.format, 21, 130), 0);
    }
  });
}

// Rows that the groups of one routing take, each padded to 128.
std::int64_t padded_rows(const std::vector<std::int64_t>& groups) {
  std::int64_t rows = 0;
  for (const std::int64_t group : groups) rows += round_up(group, 128);
  return rows;
}

// Most rows over every split of `rows` into `groups` parts.
std::int64_t most_padded_rows(std::int64_t rows, std::int64_t groups, std::vector<std::int64_t>& parts) {
  if (groups == 1) {
    parts.push_back(rows);
    const std::int64_t padded = padded_rows(parts);
    parts.pop_back();
    return padded;
  }
  std::int64_t most = 0;
  for (std::int64_t part = 0; part <= rows; ++part) {
    parts.push_back(part);
    most = std::max(most, most_padded_rows(rows - part, groups - 1, parts));
    parts.pop_back();
  }
  return most;
}

TEST(Storage, per_group_scales_fit_every_routing_and_no_more) {
  for (const std::int64_t rows : {0, 1, 2, 3, 127, 128, 129, 130, 200, 257, 258}) {
    for (const std::int64_t groups : {1, 2, 3}) {
      std::vector<std::int64_t> parts;
      const std::int64_t most = most_padded_rows(rows, groups, parts);
      const Matrix matrix{.format = kNvfp4, .rows = rows, .cols = 80, .scale_layout = ScaleLayout::scale_128x4_per_group};
      const auto bytes = storage(matrix, groups);
      ASSERT_TRUE(bytes) << bytes.status().sentence;
      EXPECT_EQ(bytes->scales, most * 8) << rows << " rows in " << groups << " groups";
    }
  }
  expect_storage({.format = kNvfp4, .rows = 2, .cols = 64, .scale_layout = ScaleLayout::scale_128x4_per_group}, 64, 2 * 512, 1000);
}

// Walks a matrix through the maps of access.h: every code and block scale lies inside its buffer, in a place of its own,
// and without tiles the last one ends the buffer.
void expect_tight(const Matrix& tags) {
  const auto bytes = storage(tags);
  ASSERT_TRUE(bytes) << bytes.status().sentence;
  const Matrix m = with_strides(tags);
  const int width = bits(m.format.element), scale_width = bits(m.format.scale);
  Occupancy codes(bytes->data * 8 / width), scales(scale_width == 0 ? 0 : bytes->scales * 8 / scale_width);
  for (std::int64_t b = 0; b < m.batch; ++b) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      for (std::int64_t col = 0; col < m.cols; ++col) {
        ASSERT_TRUE(codes.claim(code_place(m, b, row, col).index)) << b << " " << row << " " << col;
        const bool first_of_block = row % m.format.block_rows == 0 && col % m.format.block_cols == 0;
        if (scale_width == 0 || !first_of_block) continue;
        ASSERT_TRUE(scales.claim(scale_place(m, b, row, col).index)) << b << " " << row << " " << col;
      }
    }
  }
  ASSERT_EQ(packed_bytes(codes.end(), width), bytes->data);
  ASSERT_TRUE(scales.end() == scales.units() || is_tiled(m.scale_layout));
}

TEST(Storage, agrees_with_the_maps_that_read_it) {
  for (const NamedFormat& format : kFormats) {
    const bool tiles = bits(format.format.scale) == 8;
    for (const auto layout : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
      if (layout != ScaleLayout::linear && !tiles) continue;
      for (const std::int64_t rows : {1, 5, 129}) {
        for (const std::int64_t cols : {1, 31, 64, 130}) {
          SCOPED_TRACE(std::string(format.name) + " " + std::to_string(rows) + " x " + std::to_string(cols));
          Matrix matrix{.format = format.format, .batch = 2, .rows = rows, .cols = cols, .scale_layout = layout};
          expect_tight(matrix);
          matrix.row_stride = round_up(cols, 16) + 16;
          matrix.batch_stride = (rows + 1) * matrix.row_stride;
          if (layout == ScaleLayout::linear && format.format.has_scales()) matrix.scale_row_stride = 1;
          expect_tight(matrix);
        }
      }
    }
  }
}

TEST(Storage, refuses_what_does_not_fit_int64) {
  const Matrix too_large[] = {
      {.format = kF32, .rows = kLargest / 8, .cols = 9},
      {.format = kF32, .batch = std::int64_t{1} << 31, .rows = std::int64_t{1} << 31, .cols = 1},
      {.format = kF32, .batch = 3, .rows = 1, .cols = 1, .batch_stride = kLargest / 2},
      {.format = kF32, .rows = 3, .cols = 1, .row_stride = kLargest / 2},
      {.format = kNvfp4, .rows = std::int64_t{1} << 60, .cols = 64},
      {.format = kNvfp4, .rows = std::int64_t{1} << 61, .cols = std::int64_t{1} << 61, .codes = CodeLayout{Panel16::kId}},
  };
  for (const Matrix& matrix : too_large) {
    const auto bytes = storage(matrix);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.status().code, Code::invalid_argument);
    EXPECT_THAT(bytes.status().sentence, HasSubstr("rows = " + std::to_string(matrix.rows)));
    EXPECT_THAT(bytes.status().sentence, HasSubstr("2^63"));
  }
  const Matrix scales{.format = kNvfp4, .batch = 2, .rows = 1, .cols = 16, .scale_batch_stride = kLargest};
  EXPECT_THAT(storage(scales).status().sentence, HasSubstr("block scales"));
}

TEST(Storage, holds_more_than_two_gigabytes) {
  const std::int64_t rows = std::int64_t{1} << 20, cols = std::int64_t{1} << 14;
  expect_storage({.format = kNvfp4, .rows = rows, .cols = cols, .scale_layout = ScaleLayout::scale_128x4}, rows * cols / 2,
                 rows * cols / 16);
}

TEST(Storage, refuses_a_negative_count_of_groups) {
  const Matrix matrix{.format = kNvfp4, .rows = 4, .cols = 64, .scale_layout = ScaleLayout::scale_128x4_per_group};
  EXPECT_THAT(storage(matrix, -1).status().sentence, HasSubstr("groups = -1"));
}

}  // namespace
}  // namespace finescale
