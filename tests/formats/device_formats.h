// The numeric headers as one function of (case, FP32 pattern), compiled for the host and for a device: the bits must agree.
#pragma once

#include <finescale/activation.h>
#include <finescale/formats/element.h>
#include <finescale/formats/philox.h>

#include <cstdint>
#include <vector>

namespace finescale::test {

enum class Numeric : std::uint8_t { exp, tanh, erf, activation, encode, decode, power_scale, philox };

struct NumericCase {
  Numeric numeric;
  Activation activation = Activation::none;
  Element element = Element::none;
  Rounding rounding = Rounding::nearest_even;
  PowerRule power = PowerRule::round_up;
};

FINESCALE_HD constexpr std::uint32_t evaluate(const NumericCase& row, std::uint32_t pattern) {
  const float x = bits_float(pattern);
  switch (row.numeric) {
    case Numeric::exp: return float_bits(exp_f32(x));
    case Numeric::tanh: return float_bits(tanh_f32(x));
    case Numeric::erf: return float_bits(erf_f32(x));
    case Numeric::activation: return float_bits(activate(row.activation, x));
    case Numeric::encode: return encode(row.element, x, row.rounding, philox_word(1, pattern));
    case Numeric::decode: return float_bits(decode(row.element, pattern));
    case Numeric::power_scale: return power_scale_code(row.power, row.element, bits_float(pattern & 0x7FFFFFFFu));
    case Numeric::philox: return philox_word(std::uint64_t{pattern} * 0x9E3779B97F4A7C15u, std::uint64_t{pattern} << 7 | 3);
  }
  return 0;
}

// evaluate(row, i * step) for i in [0, count) on the first CUDA device; empty where there is none or a call fails.
std::vector<std::uint32_t> evaluate_on_device(const NumericCase& row, std::uint32_t count, std::uint32_t step);

}  // namespace finescale::test
