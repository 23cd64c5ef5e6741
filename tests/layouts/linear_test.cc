// Linear layouts and packed codes: K-major and MN-major maps are bijections, nibbles of both orders are read as written.
#include <finescale/layouts/linear.h>
#include <finescale/layouts/packed_codes.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layouts/occupancy.h"

namespace finescale {
namespace {

using test::Occupancy;

TEST(Linear, is_a_bijection_in_either_order_and_extent_is_tight) {
  for (const std::int64_t rows : {0, 1, 2, 7, 16}) {
    for (const std::int64_t cols : {0, 1, 3, 8, 17}) {
      for (const std::int64_t gap : {0, 1, 5}) {
        const std::int64_t strides[][2] = {{cols + gap, 1}, {1, rows + gap}};  // K-major, MN-major
        for (const auto& [row_stride, col_stride] : strides) {
          Occupancy slots(linear_extent(rows, cols, row_stride, col_stride));
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t col = 0; col < cols; ++col) ASSERT_TRUE(slots.claim(linear_offset(row, col, row_stride, col_stride)));
          }
          ASSERT_EQ(slots.claimed(), rows * cols);
          ASSERT_EQ(slots.end(), slots.units());
        }
      }
    }
  }
}

TEST(Linear, stride_zero_broadcasts) {
  EXPECT_EQ(linear_extent(1000, 8, 0, 1), 8);
  EXPECT_EQ(linear_extent(1000, 1000, 0, 0), 1);
  EXPECT_EQ(linear_offset(999, 7, 0, 1), 7);
}

TEST(PackedCodes, even_index_lies_in_the_low_nibble_or_in_the_high_one) {
  const std::byte bytes[] = {std::byte{0x21}, std::byte{0x43}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(load_code(bytes, i, 4, false), static_cast<std::uint32_t>(i + 1));
    EXPECT_EQ(load_code(bytes, i ^ 1, 4, true), static_cast<std::uint32_t>(i + 1));
  }
}

TEST(PackedCodes, wider_codes_are_little_endian) {
  const std::byte bytes[] = {std::byte{0x11}, std::byte{0x22}, std::byte{0x33}, std::byte{0x44},
                             std::byte{0x55}, std::byte{0x66}, std::byte{0x77}, std::byte{0x88}};
  EXPECT_EQ(load_code(bytes, 3, 8, false), 0x44u);
  EXPECT_EQ(load_code(bytes, 1, 16, false), 0x4433u);
  EXPECT_EQ(load_code(bytes, 1, 32, false), 0x88776655u);
}

TEST(PackedCodes, are_loaded_as_stored_and_leave_their_neighbours) {
  constexpr std::int64_t kCount = 9;
  for (const int width : {4, 8, 16, 32}) {
    for (const bool high_nibble_first : {false, true}) {
      for (const std::uint8_t fill : {std::uint8_t{0x00}, std::uint8_t{0xFF}}) {
        for (std::int64_t at = 0; at < kCount; ++at) {
          std::vector<std::byte> bytes(static_cast<std::size_t>(packed_bytes(kCount, width)), std::byte{fill});
          const std::uint32_t mask = width == 32 ? ~0u : (1u << width) - 1, code = 0x5A69C3B6u & mask;
          store_code(bytes.data(), at, width, high_nibble_first, code);
          for (std::int64_t i = 0; i < kCount; ++i) {
            EXPECT_EQ(load_code(bytes.data(), i, width, high_nibble_first), i == at ? code : fill * 0x01010101u & mask)
                << width << " " << at;
          }
        }
      }
    }
  }
}

TEST(PackedCodes, odd_counts_end_in_half_a_byte) {
  EXPECT_EQ(packed_bytes(0, 4), 0);
  EXPECT_EQ(packed_bytes(1, 4), 1);
  EXPECT_EQ(packed_bytes(9, 4), 5);
  EXPECT_EQ(packed_bytes(9, 8), 9);
  EXPECT_EQ(packed_bytes(3, 16), 6);
}

}  // namespace
}  // namespace finescale
