// E8M0: every code, rounding up at every exponent, and the three rules from amax to a scale (docs/formats.md).
#include <finescale/formats/element.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace finescale {
namespace {

constexpr std::uint32_t kMantissas[] = {0,        1,        0x1FFFFF, 0x3FFFFF, 0x400000, 0x400001,
                                        0x5FFFFF, 0x600000, 0x700000, 0x77FFFF, 0x780000, 0x7FFFFF};

int clamp_code(int exponent) { return std::clamp(exponent + 127, 0, 254); }

TEST(E8m0, decodes_every_code) {
  for (std::uint32_t code = 0; code < 255; ++code) EXPECT_EQ(E8M0::decode(code), std::ldexp(1.0, static_cast<int>(code) - 127));
  EXPECT_TRUE(std::isnan(E8M0::decode(255)));
}

TEST(E8m0, encodes_every_decoded_code_as_itself) {
  for (std::uint32_t code = 0; code < 256; ++code) EXPECT_EQ(encode(Element::e8m0, decode(Element::e8m0, code)), code);
}

TEST(E8m0, rounds_up_at_every_exponent) {
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t mantissa : kMantissas) {
      const float x = bits_float(exponent << 23 | mantissa);
      int power = -127;
      while (std::ldexp(1.0, power) < x) ++power;
      const auto expected = static_cast<std::uint32_t>(clamp_code(power));
      EXPECT_EQ(E8M0::encode_round_up(x), expected) << std::hexfloat << x;
      EXPECT_EQ(E8M0::encode_round_up(-x), expected) << std::hexfloat << -x;
    }
  }
}

TEST(E8m0, rounds_up_at_the_ends) {
  EXPECT_EQ(E8M0::encode_round_up(0.0f), 0u);
  EXPECT_EQ(E8M0::encode_round_up(0x1p-127f), 0u);
  EXPECT_EQ(E8M0::encode_round_up(0x1.1p-127f), 1u);
  EXPECT_EQ(E8M0::encode_round_up(std::numeric_limits<float>::infinity()), 254u);
  EXPECT_EQ(E8M0::encode_round_up(std::numeric_limits<float>::quiet_NaN()), 255u);
}

TEST(PowerScale, follows_the_table_of_mxfp4_exponents) {
  constexpr struct {
    float amax;
    int ocp_floor, round_up, even;
  } kRows[] = {{1.51f, -2, -1, -2}, {1.75f, -2, -1, -1}, {6.01f, 0, 1, 0}, {7.0f, 0, 1, 1}, {6.0f, 0, 0, 0}, {3.0f, -1, -1, -1}};
  for (const auto& row : kRows) {
    EXPECT_EQ(power_scale_code(PowerRule::ocp_floor, Element::e2m1, row.amax), static_cast<std::uint32_t>(row.ocp_floor + 127)) << row.amax;
    EXPECT_EQ(power_scale_code(PowerRule::round_up, Element::e2m1, row.amax), static_cast<std::uint32_t>(row.round_up + 127)) << row.amax;
    EXPECT_EQ(power_scale_code(PowerRule::even, Element::e2m1, row.amax), static_cast<std::uint32_t>(row.even + 127)) << row.amax;
  }
}

struct MxElement {
  Element element;
  int emax, mantissa_bits;
  double largest;
};
constexpr MxElement kMxElements[] = {{Element::e2m1, 2, 1, 6}, {Element::e4m3, 8, 3, 448}, {Element::e5m2, 15, 2, 57344}};

TEST(PowerScale, follows_each_rule_at_every_exponent) {
  for (const MxElement& mx : kMxElements) {
    for (std::uint32_t bits_high = 0; bits_high < 255; ++bits_high) {
      for (const std::uint32_t mantissa : kMantissas) {
        const float amax = bits_float(bits_high << 23 | mantissa);
        int floor_code = 0, even_code = 0;
        if (amax != 0) {
          const int exponent = std::ilogb(amax);
          const bool carries = std::ldexp(amax, -exponent) >= 2 - std::ldexp(1.0, -mx.mantissa_bits - 1);
          floor_code = clamp_code(exponent - mx.emax);
          even_code = clamp_code(exponent + (carries ? 1 : 0) - mx.emax);
        }
        ASSERT_EQ(power_scale_code(PowerRule::ocp_floor, mx.element, amax), static_cast<std::uint32_t>(floor_code))
            << std::hexfloat << amax;
        ASSERT_EQ(power_scale_code(PowerRule::even, mx.element, amax), static_cast<std::uint32_t>(even_code)) << std::hexfloat << amax;
        const std::uint32_t up = power_scale_code(PowerRule::round_up, mx.element, amax);
        ASSERT_EQ(up, E8M0::encode_round_up(amax / static_cast<float>(mx.largest)));
        if (amax / mx.largest < 0x1p-126) continue;                               // the quotient is not exact to half an ulp
        ASSERT_LE(amax, mx.largest * E8M0::decode(up)) << std::hexfloat << amax;  // nothing saturates
        ASSERT_TRUE(up == 0 || amax > mx.largest * E8M0::decode(up) / 2) << std::hexfloat << amax;
      }
    }
  }
}

TEST(PowerScale, gives_code_zero_for_zero_and_nan_for_what_is_not_finite) {
  for (const PowerRule rule : {PowerRule::round_up, PowerRule::ocp_floor, PowerRule::even}) {
    for (const MxElement& mx : kMxElements) {
      EXPECT_EQ(power_scale_code(rule, mx.element, 0.0f), 0u);
      EXPECT_EQ(power_scale_code(rule, mx.element, std::numeric_limits<float>::quiet_NaN()), 255u);
      EXPECT_EQ(power_scale_code(rule, mx.element, std::numeric_limits<float>::infinity()), 255u);
    }
  }
}

}  // namespace
}  // namespace finescale
