// Padding of tiled scales: every producer writes it as zeros, even over a dirty buffer, and no product reads it.
#include <finescale/access.h>
#include <finescale/gemm.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check/owned_matrix.h"

namespace finescale {
namespace {

void fill(const GuardedBuffer& buffer, std::uint8_t byte) {
  if (buffer.bytes() != 0) std::memset(buffer.data(), byte, static_cast<std::size_t>(buffer.bytes()));
}

std::uint8_t byte_at(const GuardedBuffer& buffer, std::int64_t offset) { return static_cast<std::uint8_t>(buffer.data()[offset]); }

class Padding : public testing::Test {
 protected:
  const Device device = *Device::open("cpu");
  Execution execution{.device = &device};
};

// A 1 x 64 row of ones times eight rows of ones whose scales are 1, 1.5 and 2 in turn, over scale padding of NaN.
TEST_F(Padding, of_scales_is_never_read_by_a_product) {
  constexpr std::int64_t kColumns = 64, kN = 8;
  constexpr std::uint32_t kScales[] = {0x38, 0x3C, 0x40};
  const auto a = *OwnedMatrix::make({.format = kNvfp4, .rows = 1, .cols = kColumns, .scale_layout = ScaleLayout::scale_128x4});
  const auto b = *OwnedMatrix::make({.format = kNvfp4, .rows = kN, .cols = kColumns, .scale_layout = ScaleLayout::scale_128x4});
  for (const OwnedMatrix* matrix : {&a, &b}) {
    fill(matrix->data(), 0x22);  // 1.0 twice
    fill(matrix->scales(), 0x7F);
    const MutableMatrix view = with_strides(matrix->view());
    for (std::int64_t row = 0; row < view.rows; ++row) {
      for (std::int64_t col = 0; col < kColumns; col += 16) set_scale_code(view, 0, row, col, kScales[row % 3]);
    }
  }
  std::array<float, kN> d{};
  d.fill(bits_float(0x7FC00000u));
  const GemmProblem problem{.a = a.view(),
                            .b = b.view(),
                            .d = {.format = kF32, .rows = 1, .cols = kN, .alignment = 4, .data = reinterpret_cast<std::byte*>(d.data())},
                            .kernel = "gemm_reference"};
  const auto planned = plan(problem, device);
  ASSERT_TRUE(planned) << planned.status().sentence;
  std::vector<std::byte> scratch(static_cast<std::size_t>(planned->choice.scratch_bytes) + 256);
  execution.workspace.scratch = scratch.data() + (256 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 256);
  execution.workspace.scratch_bytes = planned->choice.scratch_bytes;
  const Status status = run(*planned, problem, execution);
  ASSERT_TRUE(status) << status.sentence;
  constexpr std::array<float, kN> kExpected = {64, 96, 128, 64, 96, 128, 64, 96};
  EXPECT_EQ(d, kExpected);
}

TEST_F(Padding, of_scales_is_zeroed_by_quantize) {
  std::vector<float> values(3 * 80, 6.0f);
  for (const auto layout : {ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
    const auto to = *OwnedMatrix::make({.format = kMxfp4, .rows = 3, .cols = 80, .scale_layout = layout});  // 3 x 3 scales
    fill(to.scales(), 0xFF);
    const Matrix from{.format = kF32, .rows = 3, .cols = 80, .alignment = 4, .data = reinterpret_cast<const std::byte*>(values.data())};
    const Status status = quantize({.from = from, .to = to.view(), .kernel = "quantize_reference"}, execution);
    ASSERT_TRUE(status) << status.sentence;
    std::int64_t scales = 0;
    for (std::int64_t offset = 0; offset < to.scales().bytes(); ++offset) {
      const std::uint8_t byte = byte_at(to.scales(), offset);
      ASSERT_TRUE(byte == 0 || byte == 127) << static_cast<int>(byte) << " at " << offset;
      scales += byte == 127;
    }
    EXPECT_EQ(scales, 9);
    EXPECT_TRUE(to.guards_intact());
  }
}

// 3 x 3 scales of K = 48, 130 x 5 of K = 80: each scale in its slot by the padded width, zeros elsewhere, and back again.
TEST_F(Padding, repack_to_tiles_and_back_restores_every_scale) {
  constexpr std::int64_t kShapes[][2] = {{3, 48}, {130, 80}};
  for (const auto& [rows, cols] : kShapes) {
    const auto linear = *OwnedMatrix::make({.format = kNvfp4, .rows = rows, .cols = cols});
    const auto tiled = *OwnedMatrix::make({.format = kNvfp4, .rows = rows, .cols = cols, .scale_layout = ScaleLayout::scale_128x4});
    const auto back = *OwnedMatrix::make({.format = kNvfp4, .rows = rows, .cols = cols});
    fill(linear.data(), 0x31);
    for (std::int64_t i = 0; i < linear.scales().bytes(); ++i) linear.scales().data()[i] = static_cast<std::byte>(0x10 + i % 0x60);
    fill(tiled.scales(), 0xFF);
    Status status = repack({.from = linear.view(), .to = tiled.view(), .kernel = "repack_reference"}, execution);
    ASSERT_TRUE(status) << status.sentence;
    const std::int64_t scale_cols = cols / 16;
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(tiled.scales().bytes()), 0);
    for (std::int64_t i = 0; i < rows * scale_cols; ++i) {
      expected[static_cast<std::size_t>(scale_128x4_offset(i / scale_cols, i % scale_cols, scale_cols))] = byte_at(linear.scales(), i);
    }
    for (std::int64_t offset = 0; offset < tiled.scales().bytes(); ++offset) {
      ASSERT_EQ(byte_at(tiled.scales(), offset), expected[static_cast<std::size_t>(offset)]) << offset;
    }
    status = repack({.from = tiled.view(), .to = back.view(), .kernel = "repack_reference"}, execution);
    ASSERT_TRUE(status) << status.sentence;
    EXPECT_EQ(std::memcmp(back.scales().data(), linear.scales().data(), static_cast<std::size_t>(linear.scales().bytes())), 0);
    EXPECT_TRUE(tiled.guards_intact() && back.guards_intact());
  }
}

}  // namespace
}  // namespace finescale
