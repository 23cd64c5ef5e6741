// Single numbers whose bytes are known: the contract's vectors, and cases that other systems got wrong.
#include "support/quantized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace finescale::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
const QuantizeOptions kComputed{.global = GlobalScale::one};
const QuantizeOptions kGivenOne{.global = GlobalScale::one, .given = 1.0f};
const QuantizeOptions kFlashrt{.recipe = {.profile = Profile::flashrt}, .from = kF16};

std::vector<float> ramp() {
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i - 8) * 0.375f);
  return x;
}

std::vector<float> midpoints() {
  std::vector<float> x{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f};
  for (int i = 0; i < 8; ++i) x.push_back(-x[static_cast<std::size_t>(i)]);
  return x;
}

std::vector<float> halves(float first, float second) {
  std::vector<float> x = repeated(8, first);
  x.insert(x.end(), 8, second);
  return x;
}

TEST(QuantizeValues, ramp) {
  const Quantized q = quantized(kNvfp4, 1, ramp());
  EXPECT_EQ(q.scale(0, 0), 0x30u);
  EXPECT_THAT(q.bytes(), ElementsAre(0xFF, 0xEE, 0xCD, 0xAB, 0x20, 0x43, 0x65, 0x76));
  EXPECT_THAT(quantized(kNvfp4, 1, ramp(), kFlashrt).bytes(), ElementsAre(0xFF, 0xEE, 0xCD, 0x9B, 0x10, 0x43, 0x65, 0x76));
}

TEST(QuantizeValues, ramp_with_a_global_scale) {
  const Quantized q = quantized(kNvfp4, 1, ramp(), kComputed);
  EXPECT_EQ(float_bits(q.global()), 0x3A924925u);
  EXPECT_EQ(q.scale(0, 0), 0x7Eu);
  EXPECT_THAT(q.bytes(), ElementsAre(0xFF, 0xEE, 0xCD, 0xAB, 0x20, 0x43, 0x65, 0x76));
}

TEST(QuantizeValues, rounds_ties_to_even) {
  const Quantized q = quantized(kNvfp4, 1, midpoints());
  EXPECT_EQ(q.scale(0, 0), 0x38u);
  EXPECT_THAT(q.codes(), ElementsAre(0, 2, 2, 4, 4, 6, 6, 7, 8, 10, 10, 12, 12, 14, 14, 15));
  EXPECT_THAT(q.bytes(), ElementsAre(0x20, 0x42, 0x64, 0x76, 0xA8, 0xCA, 0xEC, 0xFE));
  EXPECT_THAT(quantized(kNvfp4, 1, midpoints(), kFlashrt).bytes(), ElementsAre(0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE));
}

TEST(QuantizeValues, zeros) {
  const Quantized q = quantized(kNvfp4, 1, repeated(16, 0.0f));
  EXPECT_EQ(q.scale(0, 0), 0u);
  EXPECT_THAT(q.bytes(), Each(0x00));
  const Quantized flashrt = quantized(kNvfp4, 1, repeated(16, 0.0f), kFlashrt);
  EXPECT_EQ(flashrt.scale(0, 0), 0u);
  EXPECT_THAT(flashrt.bytes(), Each(0x77));
}

TEST(QuantizeValues, a_scale_that_underflows_gives_positive_zeros) {
  const Quantized q = quantized(kNvfp4, 1, halves(0.005f, -0.005f));
  EXPECT_EQ(q.scale(0, 0), 0u);
  EXPECT_THAT(q.bytes(), Each(0x00));
  EXPECT_THAT(quantized(kNvfp4, 1, halves(0.005f, -0.005f), kFlashrt).bytes(), ElementsAre(0x77, 0x77, 0x77, 0x77, 0xFF, 0xFF, 0xFF, 0xFF));
}

TEST(QuantizeValues, saturates_beyond_the_largest_scale) {
  const Quantized q = quantized(kNvfp4, 1, halves(4000.0f, -1.0f));
  EXPECT_EQ(q.scale(0, 0), 0x7Eu);
  EXPECT_THAT(q.bytes(), ElementsAre(0x77, 0x77, 0x77, 0x77, 0x88, 0x88, 0x88, 0x88));
}

TEST(QuantizeValues, fp8_saturates_instead_of_becoming_nan) {
  const Quantized q = quantized(kFp8E4m3Tensor, 1, {1000, 448, 464, 465, -1000}, kGivenOne);
  EXPECT_THAT(q.codes(), ElementsAre(0x7E, 0x7E, 0x7E, 0x7E, 0xFE));
}

TEST(QuantizeValues, fp8_rounds_ties_to_even_down_to_the_smallest_subnormal) {
  const Quantized q = quantized(kFp8E4m3Tensor, 1, {4.25f, 4.75f, 17, 19, 0x1p-10f, 0x3p-10f}, kGivenOne);
  EXPECT_THAT(dequantized(q.view()), ElementsAre(4, 5, 16, 20, 0, 0x1p-8f));
}

// A zero block beside a large one: its stand-in scale must not overflow.
TEST(QuantizeValues, a_zero_block_keeps_a_finite_scale) {
  std::vector<float> x = repeated(16, 1.0f);
  x.resize(32, 0.0f);
  const Quantized q = quantized(kNvfp4, 1, x, kComputed);
  EXPECT_EQ(q.scale(0, 0), 0x7Eu);
  EXPECT_NE(q.scale(0, 16) & 0x7F, 0x7Fu);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(q.code(0, i), i < 16 ? 7u : 0u);
  EXPECT_EQ(dequantized(q.view()), x);
}

std::vector<std::uint32_t> power_codes(const Format& format, PowerRule rule, const std::vector<float>& amax, const Format& from = kF32) {
  std::vector<std::uint32_t> codes;
  for (const float value : amax) {
    std::vector<float> x = repeated(32, 0.0f);
    x[7] = -value;
    codes.push_back(quantized(format, 1, x, {.recipe = {.power = rule}, .from = from}).scale(0, 0));
  }
  return codes;
}

TEST(QuantizeValues, power_of_two_scales_follow_their_rule) {
  const std::vector<float> amax{4, 5.9f, 6, 6.1f, 7, 7.9f, 8, 12};
  EXPECT_THAT(power_codes(kMxfp4, PowerRule::ocp_floor, amax), ElementsAre(127, 127, 127, 127, 127, 127, 128, 128));
  EXPECT_THAT(power_codes(kMxfp4, PowerRule::round_up, amax), ElementsAre(127, 127, 127, 128, 128, 128, 128, 128));
  EXPECT_THAT(power_codes(kMxfp4, PowerRule::even, amax), ElementsAre(127, 127, 127, 127, 128, 128, 128, 128));
}

TEST(QuantizeValues, power_of_two_scales_do_not_depend_on_the_input_type) {
  for (const Format& from : {kF32, kBf16, kF16}) {
    EXPECT_THAT(power_codes(kMxfp4, PowerRule::ocp_floor, {4, 6, 12, 24, 3}, from), ElementsAre(127, 127, 128, 129, 126));
    EXPECT_THAT(power_codes(kMxfp4, PowerRule::round_up, {6, 9, 18, 36, 4.5f}, from), ElementsAre(127, 128, 129, 130, 127));
  }
}

TEST(QuantizeValues, codes_are_made_with_the_scale_that_is_stored) {
  const Quantized q = quantized(kFp8E4m3Block128, 128, repeated(128 * 128, 300.0f), {.recipe = {.pow2 = true}});
  EXPECT_EQ(block_scale_at(q.view(), 0, 0, 0), 1.0f);
  EXPECT_THAT(dequantized(q.view()), Each(288.0f));
}

TEST(QuantizeValues, a_zero_row_does_not_become_nan) {
  std::vector<float> x = repeated(128, 0.0f);
  x.resize(256, 0.5f);
  const Quantized q = quantized(kFp8E4m3Row128, 2, x);
  EXPECT_TRUE(is_finite(block_scale_at(q.view(), 0, 0, 0)));
  EXPECT_THAT(q.codes(0), Each(0x00));
  EXPECT_THAT(q.codes(1), Each(0x7E));
  EXPECT_NEAR(dequantized(q.view())[200], 0.5, 1e-6);
  for (const Format& format : {kMxfp4, kNvfp4}) {
    EXPECT_EQ(dequantized(quantized(format, 2, std::vector<float>(x.begin() + 64, x.begin() + 192)).view())[0], 0.0f);
  }
}

TEST(QuantizeValues, scales_that_are_fp32_subnormals_work) {
  std::vector<float> x = repeated(32, 0.0f);
  x[0] = 1.5e-36f;
  const auto first = [&](const Format& format, PowerRule rule) {
    const Quantized q = quantized(format, 1, x, {.recipe = {.power = rule}, .from = kBf16});
    for (int i = 1; i < 32; ++i) EXPECT_EQ(q.code(0, i), 0u);
    return std::pair{q.scale(0, 0), q.code(0, 0)};
  };
  for (const PowerRule rule : {PowerRule::round_up, PowerRule::even, PowerRule::ocp_floor}) {
    EXPECT_EQ(first(kMxfp8E4m3, rule), std::pair(0x00u, 0x78u));
    EXPECT_EQ(first(kMxfp4, rule), rule == PowerRule::ocp_floor ? std::pair(0x05u, 0x7u) : std::pair(0x06u, 0x6u));
  }
}

// A product with the reciprocal of the global scale would fall on the other side of the tie.
TEST(QuantizeValues, elements_are_divided_not_multiplied_by_a_reciprocal) {
  std::vector<float> x = repeated(16, 1.00341796875f);
  x[0] = 8.02734375f;
  const Quantized q = quantized(kNvfp4, 1, x, {.global = GlobalScale::one, .given = 1.337890625f});
  EXPECT_EQ(q.scale(0, 0), 0x38u);
  EXPECT_THAT(q.codes(), ElementsAre(7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2));
}

TEST(QuantizeValues, a_nan_or_inf_shows_in_its_own_block_only) {
  for (const Format& format : {kNvfp4, kMxfp4, kMxfp8E4m3, kMxfp8E5m2, kFp8E4m3Row128, kFp8E4m3Block128}) {
    for (const float bad : {kNaN, kInf, -kInf}) {
      const std::int64_t width = format.block_cols;
      std::vector<float> x = repeated(static_cast<std::size_t>(2 * width), 1.0f);
      const Quantized clean = quantized(format, 1, x);
      x[5] = bad;
      const Quantized q = quantized(format, 1, x);
      EXPECT_EQ(q.scale(0, 0), nan_code(format.scale)) << format_name(format);
      EXPECT_TRUE(is_nan(block_scale_at(q.view(), 0, 0, 0)));
      EXPECT_EQ(q.code(0, 0), encode(format.element, kNaN));
      EXPECT_EQ(q.scale(0, width), clean.scale(0, width));
      EXPECT_EQ(q.code(0, width), clean.code(0, width));
      for (const float value : dequantized(q.view())) EXPECT_TRUE(is_nan(value) || value > 0);
    }
  }
}

TEST(QuantizeValues, a_nan_or_inf_does_not_touch_the_global_scale) {
  std::vector<float> x = repeated(32, 3.0f);
  x[3] = kNaN;
  x[4] = kInf;
  const Quantized q = quantized(kNvfp4, 1, x, kComputed);
  EXPECT_EQ(float_bits(q.global()), 0x3A924925u);
  EXPECT_EQ(q.scale(0, 0), 0x7Fu);
  EXPECT_EQ(q.scale(0, 16), 0x7Eu);
}

TEST(QuantizeValues, tensor_wide_formats_show_a_nan_where_they_can) {
  const Quantized fp8 = quantized(kFp8E4m3Tensor, 1, {1, kNaN, -kInf, 448}, kComputed);
  EXPECT_THAT(fp8.codes(), ElementsAre(0x38, 0x7F, 0x7F, 0x7E));
  EXPECT_EQ(fp8.global(), 1.0f);
  EXPECT_TRUE(is_nan(quantized(kFp4Tensor, 1, {1, kInf, 2, 6}, kComputed).global()));
}

TEST(QuantizeValues, a_tensor_of_zeros_has_a_finite_global_scale) {
  const Quantized q = quantized(kNvfp4, 4, repeated(128, 0.0f), kComputed);
  EXPECT_EQ(q.global(), 1.0f);
  EXPECT_THAT(dequantized(q.view()), Each(0.0f));
}

TEST(QuantizeValues, a_tiny_tensor_gets_the_smallest_normal_global_scale) {
  const Quantized q = quantized(kNvfp4, 1, repeated(16, 1e-38f), kComputed);
  EXPECT_EQ(q.global(), 0x1p-126f);
  EXPECT_GT(dequantized(q.view())[0], 0.0f);
}

TEST(QuantizeValues, padding_of_scale_tiles_is_zeroed_in_a_dirty_buffer) {
  const Quantized q = quantized(kNvfp4, 1, repeated(64, 6.0f), {.scales = ScaleLayout::scale_128x4});
  const GuardedBuffer& scales = q.matrix.scales();
  ASSERT_EQ(scales.bytes(), 512);
  for (std::int64_t i = 0; i < 512; ++i) EXPECT_EQ(std::to_integer<int>(scales.data()[i]), i < 4 ? 0x38 : 0) << i;
}

TEST(QuantizeValues, rows_that_are_no_multiple_of_anything_are_taken) {
  for (const auto& [rows, cols] : {std::pair{1, 16}, {33, 16}, {3, 48}}) {
    std::vector<float> x;
    for (int i = 0; i < rows * cols; ++i) x.push_back(static_cast<float>(i % cols % 7));
    const Quantized plain = quantized(kNvfp4, rows, x), scaled = quantized(kNvfp4, rows, x, kComputed);
    const std::vector<float> back = dequantized(plain.view());
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; c += 16) {
        EXPECT_EQ(plain.scale(r, c), 0x38u);
        EXPECT_EQ(scaled.scale(r, c), 0x7Eu);
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(back[i], x[i] == 5.0f ? 4.0f : x[i]);
  }
}

}  // namespace
}  // namespace finescale::test
