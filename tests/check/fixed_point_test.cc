#include "check/fixed_point.h"

#include "check/operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace finescale {
namespace {

FixedPoint number(double value) {
  FixedPoint fixed;
  return fixed += value;
}

double random_double(std::uint64_t seed, std::uint64_t index, int exponents) {
  const std::uint64_t bits = hash_bits(seed, index);
  const double significand = static_cast<double>(bits >> 11) - 0x1p52;
  return std::ldexp(significand, static_cast<int>(bits % static_cast<std::uint64_t>(2 * exponents)) - exponents - 52);
}

TEST(FixedPoint, agrees_with_128_bit_integers) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    ExactSum sum;
    Int128 expected = 0;  // in units of 2^-30
    for (std::uint64_t i = 0; i < 50; ++i) {
      const auto value = static_cast<Int128>(static_cast<std::int64_t>(hash_bits(trial, 3 * i)) >> 8);
      const int shift = static_cast<int>(hash_bits(trial, 3 * i + 1) % 60);
      sum.add(value, shift - 30);
      expected += value << shift;
    }
    FixedPoint wanted;
    const bool negative = expected < 0;
    wanted.add(static_cast<Uint128>(negative ? -expected : expected), -30);
    FixedPoint zero;
    EXPECT_EQ(sum.total(), negative ? zero -= wanted : wanted);
  }
}

TEST(FixedPoint, sums_do_not_depend_on_order) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 2000; ++i) values.push_back(random_double(1, i, 500));
  FixedPoint forward, backward, sorted;
  for (const double value : values) forward += value;
  for (auto value = values.rbegin(); value != values.rend(); ++value) backward += *value;
  std::sort(values.begin(), values.end());
  for (const double value : values) sorted += value;
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(forward, sorted);
  for (const double value : values) forward += -value;
  EXPECT_TRUE(forward.is_zero());
}

TEST(FixedPoint, survives_huge_cancellation) {
  ExactSum sum;
  sum.add(static_cast<Int128>(1) << 100, 450);
  sum.add(3, -596);
  sum.add(-(static_cast<Int128>(1) << 100), 450);
  EXPECT_EQ(sum.total().leading().significand, std::uint64_t{3} << 62);
  EXPECT_EQ(sum.total().leading().exponent, -596 - 62);
}

TEST(FixedPoint, keeps_the_smallest_and_the_largest_product) {
  FixedPoint least;
  least.add(1, -596);
  for (int i = 0; i < 4; ++i) least *= 0x1p-149f;
  EXPECT_EQ(least.leading().exponent + 63, -1192);
  FixedPoint most;
  most.add(static_cast<Uint128>(0xFFFFFF) * 0xFFFFFF, 512 - 48 + 62);
  for (int i = 0; i < 4; ++i) most *= -std::numeric_limits<float>::max();
  EXPECT_FALSE(most.is_negative());
  EXPECT_EQ(most.leading().exponent + 63, 512 + 62 + 512 - 1);
}

TEST(FixedPoint, carries_through_every_word) {
  FixedPoint value, power;
  power.add(1, 1000);
  value += power;
  value += -0x1p-1000;  // two thousand ones
  EXPECT_EQ(value.leading().exponent + 63, 999);
  value.add(1, -1000);
  EXPECT_TRUE(value == power);
}

TEST(FixedPoint, multiplies_exactly) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto x = static_cast<float>(random_double(2, 2 * i, 40)), y = static_cast<float>(random_double(2, 2 * i + 1, 40));
    FixedPoint product = number(x);
    product *= y;
    EXPECT_EQ(product, number(static_cast<double>(x) * static_cast<double>(y)));  // 48 bits
  }
  FixedPoint zero = number(5.0);
  zero *= 0.0f;
  EXPECT_TRUE(zero.is_zero());
}

TEST(FixedPoint, rounds_to_odd) {
  EXPECT_EQ(number(1.5).rounded_to_odd(), 1.5);
  EXPECT_EQ(number(-1.5).rounded_to_odd(), -1.5);
  FixedPoint above = number(1.0);
  above += 0x1p-400;
  EXPECT_EQ(above.rounded_to_odd(), 1.0 + 0x1p-52);
  FixedPoint below = number(1.0);
  below += -0x1p-400;
  EXPECT_EQ(below.rounded_to_odd(), 1.0 - 0x1p-53);
  FixedPoint tiny;
  tiny.add(3, -1200);
  EXPECT_EQ(tiny.rounded_to_odd(), 0x1p-1074);
  FixedPoint subnormal;
  subnormal.add(0b1001, -1076);  // 2.25 units of the smallest double
  EXPECT_EQ(subnormal.rounded_to_odd(), 3 * 0x1p-1074);
  FixedPoint huge;
  huge.add(1, 1100);
  EXPECT_EQ(huge.rounded_to_odd(), std::numeric_limits<double>::max());
}

// Just above a tie between two f32 numbers, where rounding to double first would forget on which side.
TEST(FixedPoint, rounding_to_odd_leaves_a_second_rounding_harmless) {
  FixedPoint value = number(1.0 + 0x1p-24);
  value += 0x1p-300;
  EXPECT_EQ(static_cast<float>(value.rounded_to_odd()), 1.0f + 0x1p-23f);
  value += -0x1p-299;
  EXPECT_EQ(static_cast<float>(value.rounded_to_odd()), 1.0f);
}

}  // namespace
}  // namespace finescale
