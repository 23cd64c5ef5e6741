// exp, tanh, erf and the activations against double arithmetic, over a sweep of every 251st float (and denser where the
// sequences change), and their bits against a checksum: bytes of quantized outputs depend on them.
#include <finescale/activation.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace finescale {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kOverflow = 0x1.ffffffp127;  // from here on a result rounds to Inf

template <class Visitor>
void sweep_floats(Visitor&& visitor) {
  constexpr std::uint32_t kStep = 251;
  for (std::uint32_t bits = 0; bits < 0x7F800000u; bits += kStep) {
    visitor(bits_float(bits));
    visitor(-bits_float(bits));
  }
  for (float x = 0.5f; x < 1.0f; x += 0x1p-18f) {
    visitor(x);
    visitor(-x);
  }
}

double ulp(double exact) {
  if (exact == 0) return 0x1p-149;
  return std::ldexp(1.0, std::max(std::ilogb(exact) - 23, -149));
}

template <class Function, class Exact>
void expect_within(double max_ulp, Function&& function, Exact&& exact_function) {
  double worst = 0;
  float at = 0;
  sweep_floats([&](float x) {
    const double exact = exact_function(static_cast<double>(x));
    const float result = function(x);
    const double error = std::fabs(exact) >= kOverflow ? (result == kInfinity ? 0 : kInfinity) : std::fabs(result - exact) / ulp(exact);
    if (!(error <= worst)) {
      worst = error;
      at = x;
    }
  });
  EXPECT_LE(worst, max_ulp) << std::hexfloat << "at " << at;
}

TEST(Exp, is_within_its_ulps) {
  expect_within(kExpMaxUlp, exp_f32, [](double x) { return std::exp(x); });
}
TEST(Tanh, is_within_its_ulps) {
  expect_within(kTanhMaxUlp, tanh_f32, [](double x) { return std::tanh(x); });
}
TEST(Erf, is_within_its_ulps) {
  expect_within(kErfMaxUlp, erf_f32, [](double x) { return std::erf(x); });
}

TEST(Exp, ends) {
  EXPECT_EQ(exp_f32(kInfinity), kInfinity);
  EXPECT_EQ(exp_f32(-kInfinity), 0.0f);
  EXPECT_EQ(exp_f32(88.8f), kInfinity);
  EXPECT_EQ(exp_f32(-103.9f), 0x1p-149f);
  EXPECT_EQ(exp_f32(-104.1f), 0.0f);
}

TEST(TanhAndErf, are_odd_and_saturate) {
  sweep_floats([](float x) {
    ASSERT_EQ(float_bits(tanh_f32(-x)), float_bits(tanh_f32(x)) ^ 0x80000000u);
    ASSERT_EQ(float_bits(erf_f32(-x)), float_bits(erf_f32(x)) ^ 0x80000000u);
    ASSERT_LE(std::fabs(tanh_f32(x)), 1.0f);
    ASSERT_LE(std::fabs(erf_f32(x)), 1.0f);
  });
  EXPECT_EQ(tanh_f32(-kInfinity), -1.0f);
  EXPECT_EQ(erf_f32(kInfinity), 1.0f);
}

double exact_activation(Activation activation, double z) {
  switch (activation) {
    case Activation::none: return z;
    case Activation::gelu_tanh:
      return z / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));  // 1 + tanh(u) = 2 / (1 + exp(-2u))
    case Activation::gelu_erf: return z / 2 * std::erfc(-z / std::sqrt(2.0));
    case Activation::silu: return z / (1 + std::exp(-z));
    case Activation::relu: return std::max(z, 0.0);
    case Activation::relu2: return z > 0 ? z * z : 0;
  }
  return 0;
}

class ActivationTest : public testing::TestWithParam<Activation> {};

TEST_P(ActivationTest, is_within_its_error) {
  const ActivationError error = activation_error(GetParam());
  double worst = 0;
  float at = 0;
  sweep_floats([&](float z) {
    const double exact = exact_activation(GetParam(), z);
    if (std::fabs(exact) >= kOverflow) return;
    const double bound = error.relative * std::fabs(exact) + error.per_input * std::fabs(z) + error.absolute;
    const double distance = std::fabs(activate(GetParam(), z) - exact), part = distance == 0 ? 0 : distance / bound;
    if (!(part <= worst)) {
      worst = part;
      at = z;
    }
  });
  EXPECT_LE(worst, 1) << std::hexfloat << "at " << at;
}

TEST_P(ActivationTest, keeps_nan_and_takes_limits) {
  EXPECT_TRUE(std::isnan(activate(GetParam(), std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(activate(GetParam(), 0.0f), 0.0f);
  EXPECT_EQ(activate(GetParam(), kInfinity), kInfinity);
  if (GetParam() == Activation::none) return;
  for (const float z : {-1e38f, -std::numeric_limits<float>::max(), -kInfinity}) EXPECT_EQ(activate(GetParam(), z), 0.0f) << z;
}

std::string activation_name(const testing::TestParamInfo<Activation>& row) {
  constexpr const char* kNames[] = {"none", "gelu_tanh", "gelu_erf", "silu", "relu", "relu2"};
  return kNames[static_cast<int>(row.param)];
}

INSTANTIATE_TEST_SUITE_P(All, ActivationTest,
                         testing::Values(Activation::none, Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu,
                                         Activation::relu2),
                         activation_name);

// FNV-1a over the bits of a function's results. The numbers were made by this code; they change only with the sequences.
template <class Function>
std::uint64_t checksum(Function&& function) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  sweep_floats([&](float x) { hash = (hash ^ float_bits(function(x))) * 0x100000001B3u; });
  return hash;
}

TEST(Activations, have_the_same_bits_on_every_host) {
  EXPECT_EQ(checksum(exp_f32), 0xE7E3E6DF59D0697Au);
  EXPECT_EQ(checksum(tanh_f32), 0x5B7F4964F8E4C199u);
  EXPECT_EQ(checksum(erf_f32), 0x0E59484E4BCF33DDu);
  EXPECT_EQ(checksum(gelu_tanh), 0xF4F4452FAC5C5B36u);
  EXPECT_EQ(checksum(gelu_erf), 0x5A0416A76C8BC433u);
  EXPECT_EQ(checksum(silu), 0x64A213C05E1B3E9Du);
}

}  // namespace
}  // namespace finescale
