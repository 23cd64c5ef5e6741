// Element encodings: every code, every f16 and bf16 input, every midpoint and its FP32 neighbours, under every rounding
// rule, against the definition in double arithmetic (grid.h).
#include <finescale/formats/element.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "formats/grid.h"

namespace finescale {
namespace {

using test::EncodingFacts;
using test::Grid;
using test::kEncodings;
using test::kRoundings;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kWords[] = {0, 1, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xBFFFFFFF, 0xC0000000, 0xFFFFFFFF};

class ElementTest : public testing::TestWithParam<EncodingFacts> {
 protected:
  const EncodingFacts facts = GetParam();
  const Grid grid{facts};

  // Both signs of x under every rule; one comparison a call keeps the sweeps fast.
  void expect_encodes_as_defined(float x) const {
    for (const float signed_x : {x, -x}) {
      for (const Rounding rounding : kRoundings) {
        for (const std::uint32_t word : kWords) {
          const std::uint32_t code = encode(facts.element, signed_x, rounding, word), defined = grid.encode(signed_x, rounding, word);
          if (code != defined) {
            ADD_FAILURE() << std::hexfloat << "x " << signed_x << " rule " << static_cast<int>(rounding) << " word " << std::hex << word
                          << ": code " << code << ", defined " << defined;
          }
          if (rounding != Rounding::stochastic) break;
        }
      }
    }
  }
};

TEST_P(ElementTest, decodes_every_code) {
  for (std::uint32_t code = 0; code < 2 * grid.sign_bit(); ++code) {
    const std::uint32_t magnitude = code & (grid.sign_bit() - 1);
    const float value = decode(facts.element, code);
    EXPECT_EQ(std::signbit(value), code >= grid.sign_bit()) << code;
    if (magnitude <= facts.max_code) {
      EXPECT_EQ(std::fabs(value), grid.value(magnitude)) << code;
    } else if (magnitude == facts.max_code + 1 && facts.element != Element::e4m3 && facts.element != Element::e2m1) {
      EXPECT_EQ(std::fabs(value), kInfinity) << code;
    } else {
      EXPECT_TRUE(std::isnan(value)) << code;
    }
  }
  EXPECT_EQ(max_value(facts.element), grid.value(facts.max_code));
  EXPECT_EQ(bits(facts.element), 1 + facts.exponent_bits + facts.mantissa_bits);
}

TEST_P(ElementTest, encodes_every_decoded_code_as_itself) {
  for (std::uint32_t code = 0; code < 2 * grid.sign_bit(); ++code) {
    if ((code & (grid.sign_bit() - 1)) > facts.max_code) continue;
    for (const Rounding rounding : kRoundings) EXPECT_EQ(encode(facts.element, decode(facts.element, code), rounding, 0), code);
  }
}

TEST_P(ElementTest, encodes_every_half_and_bfloat16_input) {
  for (std::uint32_t code = 0; code < 0x8000; ++code) {
    expect_encodes_as_defined(decode(Element::f16, code));
    expect_encodes_as_defined(bits_float(code << 16));
  }
}

TEST_P(ElementTest, encodes_every_midpoint_and_its_neighbours) {
  for (std::uint32_t code = 0; code <= facts.max_code; ++code) {
    const double middle = (grid.value(code) + grid.value(code + 1)) / 2;
    if (middle > std::numeric_limits<float>::max()) continue;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(tie, middle);
    for (const float x : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, kInfinity)}) expect_encodes_as_defined(x);
    const auto exact = static_cast<float>(grid.value(code));
    for (const float x : {std::nextafter(exact, 0.0f), std::nextafter(exact, kInfinity)}) expect_encodes_as_defined(x);
  }
}

TEST_P(ElementTest, encodes_extremes) {
  for (const float x :
       {0.0f, 0x1p-149f, 0x1.8p-149f, 0x1p-127f, 0x1.fffffep-127f, 0x1p-126f, 0x1p-75f, std::numeric_limits<float>::max(), kInfinity}) {
    expect_encodes_as_defined(x);
  }
  for (const std::uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(encode(facts.element, bits_float(nan)), facts.nan_code);
  }
}

TEST_P(ElementTest, is_monotone) {
  for (const Rounding rounding : kRoundings) {
    std::uint32_t last = 0;
    for (std::uint32_t bits = 0; bits <= 0x7F800000u; bits += 0x1001) {
      const std::uint32_t code = encode(facts.element, bits_float(bits), rounding, 0x80000000u);
      ASSERT_GE(code, last) << bits;
      last = code;
    }
  }
}

TEST_P(ElementTest, stochastic_takes_the_upper_code_for_exactly_its_share_of_words) {
  for (const std::uint32_t code : {0u, 1u, facts.max_code / 2, facts.max_code - 1}) {
    const double lower = grid.value(code), upper = grid.value(code + 1);
    for (const double share : {0x1p-10, 0.25, 0.375, 0.5, 0.8125, 1 - 0x1p-10}) {
      const auto x = static_cast<float>(lower + share * (upper - lower));
      ASSERT_EQ(x, lower + share * (upper - lower));
      const auto first_that_stays = static_cast<std::uint32_t>(std::ldexp(share, 32));
      EXPECT_EQ(encode(facts.element, x, Rounding::stochastic, first_that_stays - 1), code + 1);
      EXPECT_EQ(encode(facts.element, x, Rounding::stochastic, first_that_stays), code);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ElementTest, testing::ValuesIn(kEncodings), [](const auto& row) { return std::string(row.param.name); });

// Codes at the seven midpoints, 0.25 0.75 1.25 1.75 2.5 3.5 5.
TEST(E2m1, rounds_midpoints_by_rule) {
  constexpr float kTies[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  constexpr std::uint32_t kEven[] = {0, 2, 2, 4, 4, 6, 6}, kToZero[] = {0, 1, 2, 3, 4, 5, 6}, kAway[] = {1, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(E2M1::encode(kTies[i], Rounding::nearest_even), kEven[i]);
    EXPECT_EQ(E2M1::encode(kTies[i], Rounding::ties_to_zero), kToZero[i]);
    EXPECT_EQ(E2M1::encode(kTies[i], Rounding::ties_away), kAway[i]);
  }
}

TEST(E2m1, rounds_once) {  // double rounding through half steps would give 4, 5, 6, 6
  EXPECT_EQ(E2M1::encode(2.6f), 5u);
  EXPECT_EQ(E2M1::encode(3.6f), 6u);
  EXPECT_EQ(E2M1::encode(5.1f), 7u);
  EXPECT_EQ(E2M1::encode(5.25f), 7u);
}

TEST(E2m1, saturates_and_keeps_the_sign_of_small_negatives) {
  EXPECT_EQ(E2M1::encode(-0.1f), 8u);
  EXPECT_EQ(E2M1::encode(-0.0f), 8u);
  EXPECT_EQ(E2M1::encode(-0x1p-149f), 8u);
  EXPECT_EQ(E2M1::encode(1e30f), 7u);
  EXPECT_EQ(E2M1::encode(-kInfinity), 15u);
  EXPECT_EQ(E2M1::encode(bits_float(0xFFC00000u)), 7u);
}

TEST(E4m3, golden_codes) {
  constexpr struct {
    float x;
    std::uint32_t code;
  } kRows[] = {{0x1p-10f, 0x00},  {1.0001f * 0x1p-10f, 0x01},
               {0x1.8p-9f, 0x02}, {7.5f * 0x1p-9f, 0x08},
               {1.0f / 6, 0x23},  {1.0625f, 0x38},
               {1.1875f, 0x3A},   {248.0f, 0x78},
               {432.0f, 0x7E},    {464.0f, 0x7E},
               {464.1f, 0x7E},    {kInfinity, 0x7E},
               {0x1p-6f, 0x08},   {0x1p-9f, 0x01},
               {448.0f, 0x7E},    {-kInfinity, 0xFE},
               {-0x1p-20f, 0x80}};
  for (const auto& row : kRows) EXPECT_EQ(E4M3::encode(row.x), row.code) << row.x;
}

TEST(E5m2, saturates_but_decodes_infinity) {
  EXPECT_EQ(E5M2::encode(kInfinity), 0x7Bu);
  EXPECT_EQ(E5M2::encode(61440.0f), 0x7Bu);
  EXPECT_EQ(E5M2::decode(0xFC), -kInfinity);
  EXPECT_TRUE(std::isnan(E5M2::decode(0x7D)));
}

TEST(F16, overflows_to_infinity_from_the_midpoint_on) {
  EXPECT_EQ(F16::encode(std::nextafter(65520.0f, 0.0f)), 0x7BFFu);
  EXPECT_EQ(F16::encode(65520.0f), 0x7C00u);
  EXPECT_EQ(BF16::encode(std::numeric_limits<float>::max()), 0x7F80u);
}

TEST(F32, passes_bits_through) {
  for (const std::uint32_t word : {0u, 1u, 0x80000000u, 0x3F800000u, 0x7F800000u}) {
    EXPECT_EQ(encode(Element::f32, decode(Element::f32, word)), word);
  }
  EXPECT_EQ(max_value(Element::f32), std::numeric_limits<float>::max());
}

TEST(NoElement, is_the_factor_one) {
  EXPECT_EQ(bits(Element::none), 0);
  EXPECT_EQ(decode(Element::none, 77), 1.0f);
}

}  // namespace
}  // namespace finescale
