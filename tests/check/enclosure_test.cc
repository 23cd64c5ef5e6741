#include "check/enclosure.h"

#include "check/operands.h"

#include <finescale/activation.h>

#include <gtest/gtest.h>

#include <cmath>

namespace finescale {
namespace {

constexpr Activation kSmooth[] = {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf};
constexpr Activation kAll[] = {Activation::none, Activation::relu,      Activation::relu2,
                               Activation::silu, Activation::gelu_tanh, Activation::gelu_erf};

Enclosure point(long double z) { return {z, z}; }

struct Known {
  Activation activation;
  double z, low, high;  // the exact value lies strictly between
};

// Digits computed with 60-digit decimal arithmetic from the series of exp and erf.
TEST(ActivationEnclosure, holds_known_values) {
  constexpr Known kKnown[] = {
      {Activation::silu, 1.5, 1.22636171429, 1.22636171430},
      {Activation::silu, 6.0, 5.98516426105, 5.98516426107},
      {Activation::silu, -10.0, -4.53978687025e-4, -4.53978687024e-4},
      {Activation::gelu_erf, 1.0, 0.84134474606, 0.84134474607},
      {Activation::gelu_erf, -5.0, -1.43325785940e-6, -1.43325785939e-6},
      {Activation::gelu_tanh, 1.0, 0.84119199060, 0.84119199061},
      {Activation::relu2, 3.0, 8.9999999999, 9.0000000001},
  };
  for (const Known& known : kKnown) {
    const Enclosure value = activate(known.activation, point(known.z));
    EXPECT_LT(known.low, value.low) << known.z;
    EXPECT_LT(value.high, known.high) << known.z;
  }
}

TEST(ActivationEnclosure, is_narrow) {
  for (const Activation activation : kSmooth) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const long double z = (hash_unit(1, i) - 0.5) * 60;
      const Enclosure value = activate(activation, point(z));
      EXPECT_LE(value.low, value.high);
      EXPECT_LE(value.high - value.low, value.magnitude() * 0x1p-40L + 0x1p-1000L);
    }
  }
}

TEST(ActivationEnclosure, zero_is_exact) {
  for (const Activation activation : kAll) {
    EXPECT_EQ(activate(activation, point(0)).low, 0);
    EXPECT_EQ(activate(activation, point(0)).high, 0);
  }
}

// The slope is a bound: differences over small steps stay below it. And no silly one.
TEST(ActivationSlope, bounds_differences) {
  for (const Activation activation : kAll) {
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const long double z = (hash_unit(2, i) - 0.5) * 40, step = hash_unit(3, i) * 0.5;
      const long double rise = std::fabs(activate(activation, point(z + step)).middle() - activate(activation, point(z)).middle());
      const long double slope = activation_slope(activation, {z, z + step});
      EXPECT_LE(rise, slope * step * (1 + 1e-9L) + 1e-17L) << static_cast<int>(activation) << " at " << z;
    }
  }
  EXPECT_LT(activation_slope(Activation::silu, point(-20)), 1e-7);
  EXPECT_LT(activation_slope(Activation::gelu_erf, point(-6)), 1e-7);
  EXPECT_LT(activation_slope(Activation::gelu_tanh, point(-6)), 1e-7);
}

// The library's own FP32 activations stay within e_act.
TEST(ActivationSlack, holds_for_our_own_sequences) {
  for (const Activation activation : kAll) {
    double worst = 0;
    for (std::uint64_t i = 0; i < 200000; ++i) {
      const float z = static_cast<float>(std::ldexp(hash_unit(4, 2 * i) - 0.5, static_cast<int>(hash_bits(4, 2 * i + 1) % 40) - 30));
      const Enclosure value = activate(activation, point(z));
      const long double off = std::fabs(activate(activation, z) - value.middle());
      const long double slack = activation_slack(activation, point(z), value);
      if (off != 0) worst = std::max(worst, static_cast<double>(off / slack));
    }
    EXPECT_LE(worst, 1.0) << static_cast<int>(activation);
  }
}

TEST(Enclosure, doubles_lie_outside) {
  const long double third = 1.0L / 3;
  EXPECT_LT(lower_double(third), third);
  EXPECT_GT(upper_double(third), third);
  EXPECT_EQ(lower_double(0.5L), 0.5);
  EXPECT_EQ(upper_double(0.5L), 0.5);
}

}  // namespace
}  // namespace finescale
