// The promise that bytes agree on every backend rests on this: encodings, scale rules, Philox and activations give the same
// bits on a device as on the host, over a sweep of four million FP32 patterns. NaN results too.
#include "formats/device_formats.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace finescale {
namespace {

using test::Numeric;
using test::NumericCase;

constexpr std::uint32_t kCount = 1u << 22, kStep = 1021;

class DeviceFormats : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }

  static void expect_equal_bits(const NumericCase& row, std::uint32_t count = kCount, std::uint32_t step = kStep) {
    const std::vector<std::uint32_t> device = test::evaluate_on_device(row, count, step);
    ASSERT_EQ(device.size(), count);
    std::int64_t differences = 0;
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (device[i] != test::evaluate(row, i * step) && differences++ == 0) first = i * step;
    }
    EXPECT_EQ(differences, 0) << "numeric " << static_cast<int>(row.numeric) << " activation " << static_cast<int>(row.activation)
                              << " element " << static_cast<int>(row.element) << " rounding " << static_cast<int>(row.rounding)
                              << ": first at pattern " << std::hex << first;
  }
};

TEST_F(DeviceFormats, exp_tanh_and_erf_have_the_host_bits) {
  for (const Numeric numeric : {Numeric::exp, Numeric::tanh, Numeric::erf}) expect_equal_bits({.numeric = numeric});
}

TEST_F(DeviceFormats, activations_have_the_host_bits) {
  for (const Activation activation : {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu, Activation::relu2}) {
    expect_equal_bits({.numeric = Numeric::activation, .activation = activation});
  }
}

TEST_F(DeviceFormats, codes_are_the_host_codes_under_every_rule) {
  for (const Element element : {Element::e2m1, Element::e4m3, Element::e5m2, Element::e8m0, Element::f16, Element::bf16}) {
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::ties_to_zero, Rounding::ties_away, Rounding::stochastic}) {
      expect_equal_bits({.numeric = Numeric::encode, .element = element, .rounding = rounding});
    }
    expect_equal_bits({.numeric = Numeric::encode, .element = element}, 1u << 16, 1u << 16);  // every bf16 input, ties among them
    expect_equal_bits({.numeric = Numeric::decode, .element = element}, 1u << bits(element), 1);
  }
}

TEST_F(DeviceFormats, power_scales_and_random_words_are_the_host_ones) {
  for (const Element element : {Element::e2m1, Element::e4m3, Element::e5m2}) {
    for (const PowerRule power : {PowerRule::round_up, PowerRule::ocp_floor, PowerRule::even}) {
      expect_equal_bits({.numeric = Numeric::power_scale, .element = element, .power = power});
    }
  }
  expect_equal_bits({.numeric = Numeric::philox});
}

}  // namespace
}  // namespace finescale
