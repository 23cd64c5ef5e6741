// The element encodings a second time, from their definition in double arithmetic: the values in ascending order, and
// rounding by searching them. Slow, and shares no code with element.h.
#pragma once

#include <finescale/formats/element.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace finescale::test {

// What the specification says of an encoding: widths, the largest finite code and what overflow and NaN become.
struct EncodingFacts {
  const char* name;
  Element element;
  int exponent_bits, mantissa_bits, bias;
  std::uint32_t max_code, overflow_code, nan_code;
};

inline constexpr EncodingFacts kEncodings[] = {
    {"e2m1", Element::e2m1, 2, 1, 1, 0x7, 0x7, 0x7},
    {"e4m3", Element::e4m3, 4, 3, 7, 0x7E, 0x7E, 0x7F},
    {"e5m2", Element::e5m2, 5, 2, 15, 0x7B, 0x7B, 0x7F},
    {"f16", Element::f16, 5, 10, 15, 0x7BFF, 0x7C00, 0x7E00},
    {"bf16", Element::bf16, 8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0},
};

inline constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::ties_to_zero, Rounding::ties_away, Rounding::stochastic};

class Grid {
 public:
  explicit Grid(const EncodingFacts& facts) : facts_(facts) {
    for (std::uint32_t code = 0; code <= facts.max_code + 1; ++code) values_.push_back(value(code));
  }

  // The value of a magnitude code; one past max_code, where the next finite code would be.
  double value(std::uint32_t code) const {
    const int exponent = static_cast<int>(code >> facts_.mantissa_bits);
    const double fraction = std::ldexp(static_cast<double>(code & ((1u << facts_.mantissa_bits) - 1)), -facts_.mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - facts_.bias) : std::ldexp(1.0 + fraction, exponent - facts_.bias);
  }

  std::uint32_t sign_bit() const { return 1u << (facts_.exponent_bits + facts_.mantissa_bits); }

  std::uint32_t encode(float x, Rounding rounding, std::uint32_t random) const {
    if (std::isnan(x)) return facts_.nan_code;
    const std::uint32_t magnitude = encode_magnitude(std::fabs(static_cast<double>(x)), rounding, random);
    return (std::signbit(x) ? sign_bit() : 0) | (magnitude > facts_.max_code ? facts_.overflow_code : magnitude);
  }

 private:
  std::uint32_t encode_magnitude(double x, Rounding rounding, std::uint32_t random) const {
    if (x >= values_.back()) return facts_.max_code + 1;
    const auto lower = static_cast<std::uint32_t>(std::upper_bound(values_.begin(), values_.end(), x) - values_.begin()) - 1;
    const double way = (x - values_[lower]) / (values_[lower + 1] - values_[lower]);  // exact: the step is a power of two
    switch (rounding) {
      case Rounding::stochastic: return lower + (std::ldexp(static_cast<double>(random), -32) < way ? 1 : 0);
      case Rounding::nearest_even: return lower + (way > 0.5 || (way == 0.5 && lower % 2 == 1) ? 1 : 0);
      case Rounding::ties_to_zero: return lower + (way > 0.5 ? 1 : 0);
      case Rounding::ties_away: return lower + (way >= 0.5 ? 1 : 0);
    }
    return 0;
  }

  EncodingFacts facts_;
  std::vector<double> values_;
};

}  // namespace finescale::test
