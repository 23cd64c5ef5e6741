// Element encodings: which number each code means, and which code a number gets.
//
// E2M1 (FP4), E4M3 and E5M2 (FP8): OCP OFP8 and Microscaling specifications. E8M0: a power of two, OCP MX v1.0.
// f16 and bf16: IEEE binary16 and its truncated-binary32 sibling. Decoding is exact; encoding rounds once.
//
// To add an encoding: a struct with kBits, kMantissaBits, max_value, decode and encode, an id in Element, a line in
// visit_element.
#pragma once

#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

enum class Element : std::uint8_t { none, f32, f16, bf16, e4m3, e5m2, e2m1, e8m0 };

// How a value between two codes is rounded. The last needs a random word per value.
enum class Rounding : std::uint8_t { nearest_even, ties_to_zero, ties_away, stochastic };

// How the largest magnitude of a block becomes its E8M0 scale (power_scale_code).
enum class PowerRule : std::uint8_t { round_up, ocp_floor, even };

// What encode makes of a value beyond the largest finite code, and whether the code after that one means Inf.
enum class Overflow : std::uint8_t { saturate, saturate_knows_infinity, infinity };

// A float of 1 sign bit, kExponent exponent bits and kMantissa mantissa bits, bias 2^(kExponent-1) - 1.
// kMaxCode is the largest finite magnitude; codes above it are Inf or NaN.
template <int kExponent, int kMantissa, std::uint32_t kMaxCode, std::uint32_t kNanCode, Overflow kOverflow>
struct SmallFloat {
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kMinExponent = 2 - (1 << (kExponent - 1));  // of normal and subnormal codes
  static constexpr std::uint32_t kSignBit = 1u << (kBits - 1);
  static constexpr std::uint32_t kMax = kMaxCode;
  static constexpr std::uint32_t kNan = kNanCode;

  FINESCALE_HD static constexpr float max_value() { return decode(kMaxCode); }

  FINESCALE_HD static constexpr float decode(std::uint32_t code) {
    const std::uint32_t magnitude = code & (kSignBit - 1);
    const std::uint32_t sign = (code & kSignBit) != 0 ? 0x80000000u : 0u;
    return bits_float(sign | float_bits(decode_magnitude(magnitude)));
  }

  // NaN gives kNan without a sign; small negatives keep theirs. `random` is read by stochastic rounding only: the
  // upper neighbour is taken where random * 2^-32 < the fraction of the way to it.
  FINESCALE_HD static constexpr std::uint32_t encode(float value, Rounding rounding = Rounding::nearest_even, std::uint32_t random = 0) {
    if (is_nan(value)) return kNan;
    const std::uint32_t bits = float_bits(value);
    const std::uint32_t sign = (bits >> 31) != 0 ? kSignBit : 0u;
    const std::uint32_t code = encode_magnitude(bits & 0x7FFFFFFFu, rounding, random);
    if (code <= kMaxCode) return sign | code;
    return sign | (kOverflow == Overflow::infinity ? kMaxCode + 1 : kMaxCode);
  }

 private:
  FINESCALE_HD static constexpr float decode_magnitude(std::uint32_t magnitude) {
    if (magnitude > kMaxCode) {
      const bool infinite = kOverflow != Overflow::saturate && magnitude == kMaxCode + 1;
      return bits_float(infinite ? 0x7F800000u : 0x7FC00000u);
    }
    if constexpr (kExponent == 8) {
      return bits_float(magnitude << (23 - kMantissa));  // FP32's own exponent, subnormals included
    } else {
      if (magnitude >> kMantissa == 0) {  // subnormal: a multiple of the smallest code, which FP32 holds as a normal number
        return static_cast<float>(magnitude) * bits_float(static_cast<std::uint32_t>(kMinExponent - kMantissa + 127) << 23);
      }
      return bits_float((magnitude << (23 - kMantissa)) + (static_cast<std::uint32_t>(kMinExponent - 1 + 127) << 23));
    }
  }

  // The code of the FP32 magnitude `bits`, above kMaxCode where it overflows.
  // value = significand * 2^(exponent - 23) lies on a grid of step 2^(grid - kMantissa): whole steps and a rest below one step,
  // counted in units of 2^-shift.
  FINESCALE_HD static constexpr std::uint32_t encode_magnitude(std::uint32_t bits, Rounding rounding, std::uint32_t random) {
    if (bits >= 0x7F800000u) return kMaxCode + 1;
    const bool subnormal = bits < 0x00800000u;
    const int exponent = subnormal ? -126 : static_cast<int>(bits >> 23) - 127;
    const std::uint64_t significand = subnormal ? bits : (bits & 0x7FFFFFu) | 0x800000u;
    const int grid = exponent < kMinExponent ? kMinExponent : exponent;
    const int distance = 23 - kMantissa + grid - exponent;
    const int shift = distance > 60 ? 60 : distance;  // from 57 on the rest is below 2^-32 steps: no rule tells it from a smaller one
    const std::uint64_t whole = significand >> shift;
    const std::uint64_t rest = significand - (whole << shift);
    const std::uint32_t below = (static_cast<std::uint32_t>(grid - kMinExponent) << kMantissa) + static_cast<std::uint32_t>(whole);
    return below + (rounds_up(whole, rest, shift, rounding, random) ? 1u : 0u);
  }

  FINESCALE_HD static constexpr bool rounds_up(std::uint64_t whole, std::uint64_t rest, int shift, Rounding rounding,
                                               std::uint32_t random) {
    if (rounding == Rounding::stochastic) {  // random / 2^32 < rest / 2^shift; both sides stay below 2^60
      return shift <= 32 ? random < (rest << (32 - shift)) : std::uint64_t{random} << (shift - 32) < rest;
    }
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    if (rest != half) return rest > half;
    if (rounding == Rounding::nearest_even) return (whole & 1) != 0;
    return rounding == Rounding::ties_away;
  }
};

using E2M1 = SmallFloat<2, 1, 0x7, 0x7, Overflow::saturate>;                   // 0 .5 1 1.5 2 3 4 6; no Inf, no NaN
using E4M3 = SmallFloat<4, 3, 0x7E, 0x7F, Overflow::saturate>;                 // max 448, no Inf
using E5M2 = SmallFloat<5, 2, 0x7B, 0x7F, Overflow::saturate_knows_infinity>;  // max 57344; 0x7C decodes to Inf
using F16 = SmallFloat<5, 10, 0x7BFF, 0x7E00, Overflow::infinity>;
using BF16 = SmallFloat<8, 7, 0x7F7F, 0x7FC0, Overflow::infinity>;

// A power of two: 2^(code - 127), code 255 is NaN; there is no zero, no sign and no Inf.
struct E8M0 {
  static constexpr int kBits = 8;
  static constexpr int kMantissaBits = 0;
  static constexpr std::uint32_t kMax = 254;
  static constexpr std::uint32_t kNan = 255;

  FINESCALE_HD static constexpr float max_value() { return decode(kMax); }

  FINESCALE_HD static constexpr float decode(std::uint32_t code) {
    if (code == kNan) return bits_float(0x7FC00000u);
    return bits_float(code == 0 ? 0x00400000u : code << 23);  // 2^-127 is an FP32 subnormal
  }

  // The smallest power of two >= |value|: 0 and anything up to 2^-127 give code 0, the rest caps at 254.
  FINESCALE_HD static constexpr std::uint32_t encode_round_up(float value) {
    if (is_nan(value)) return kNan;
    const std::uint32_t bits = float_bits(value) & 0x7FFFFFFFu;
    const std::uint32_t exponent = bits >> 23, mantissa = bits & 0x7FFFFFu;
    const bool up = mantissa != 0 && !(exponent == 0 && mantissa <= 0x400000u);
    const std::uint32_t code = exponent + (up ? 1u : 0u);
    return code > kMax ? kMax : code;
  }
  FINESCALE_HD static constexpr std::uint32_t encode(float value, Rounding = Rounding::nearest_even, std::uint32_t = 0) {
    return encode_round_up(value);
  }
};

// One IEEE binary32 stored as it is, so that f32 can stand where an encoding does.
struct F32 {
  static constexpr int kBits = 32;
  static constexpr int kMantissaBits = 23;
  FINESCALE_HD static constexpr float max_value() { return bits_float(0x7F7FFFFFu); }
  FINESCALE_HD static constexpr float decode(std::uint32_t code) { return bits_float(code); }
  FINESCALE_HD static constexpr std::uint32_t encode(float value, Rounding = Rounding::nearest_even, std::uint32_t = 0) {
    return float_bits(value);
  }
};

// An absent operand or scale: no bits, the factor 1.
struct NoElement {
  static constexpr int kBits = 0;
  static constexpr int kMantissaBits = 0;
  FINESCALE_HD static constexpr float max_value() { return 0.0f; }
  FINESCALE_HD static constexpr float decode(std::uint32_t) { return 1.0f; }
  FINESCALE_HD static constexpr std::uint32_t encode(float, Rounding = Rounding::nearest_even, std::uint32_t = 0) { return 0; }
};

// Calls visitor with the encoding struct of a run-time id and returns what it returns.
template <class Visitor>
FINESCALE_HD constexpr auto visit_element(Element element, Visitor&& visitor) {
  switch (element) {
    case Element::f32: return visitor(F32{});
    case Element::f16: return visitor(F16{});
    case Element::bf16: return visitor(BF16{});
    case Element::e4m3: return visitor(E4M3{});
    case Element::e5m2: return visitor(E5M2{});
    case Element::e2m1: return visitor(E2M1{});
    case Element::e8m0: return visitor(E8M0{});
    case Element::none: break;
  }
  return visitor(NoElement{});
}

FINESCALE_HD constexpr int bits(Element element) {
  return visit_element(element, [](auto encoding) { return decltype(encoding)::kBits; });
}

// The largest finite magnitude.
FINESCALE_HD constexpr float max_value(Element element) {
  return visit_element(element, [](auto encoding) { return decltype(encoding)::max_value(); });
}

FINESCALE_HD constexpr float decode(Element element, std::uint32_t code) {
  return visit_element(element, [code](auto encoding) { return decltype(encoding)::decode(code); });
}

// E8M0 always rounds up, f32 never rounds; the others follow `rounding`.
FINESCALE_HD constexpr std::uint32_t encode(Element element, float value, Rounding rounding = Rounding::nearest_even,
                                            std::uint32_t random = 0) {
  return visit_element(element, [=](auto encoding) { return decltype(encoding)::encode(value, rounding, random); });
}

// The E8M0 scale of a block of `element` codes whose largest finite magnitude is amax (docs/formats.md). With emax the
// exponent of the largest element and exponent() the biased exponent field of an FP32 number:
//   round_up:  the smallest power of two >= fp32(amax / max_value(element))
//   ocp_floor: exponent(amax) - emax
//   even:      exponent(amax + half a step of the element at amax) - emax, the sum on the FP32 bits
// All clamp to 0..254; 0 gives code 0, NaN and Inf give NaN.
FINESCALE_HD constexpr std::uint32_t power_scale_code(PowerRule rule, Element element, float amax) {
  if (!is_finite(amax)) return E8M0::kNan;
  if (rule == PowerRule::round_up) return E8M0::encode_round_up(amax / max_value(element));
  const std::uint32_t emax = (float_bits(max_value(element)) >> 23) - 127;
  const int mantissa_bits = visit_element(element, [](auto encoding) { return decltype(encoding)::kMantissaBits; });
  const std::uint32_t carry = rule == PowerRule::even ? 1u << (22 - mantissa_bits) : 0u;
  const std::uint32_t exponent = (float_bits(amax) + carry) >> 23;
  return exponent < emax ? 0 : exponent - emax;
}

static_assert(E2M1::decode(5) == 3.0f && E2M1::decode(15) == -6.0f && E2M1::encode(2.5f) == 4 && E2M1::encode(-0.1f) == 8);
static_assert(E4M3::decode(0x01) == 0x1p-9f && E4M3::encode(464.1f) == 0x7E && E4M3::encode(1.0f / 6.0f) == 0x23);
static_assert(E5M2::decode(0x7B) == 57344.0f && E5M2::encode(1e9f) == 0x7B && is_nan(E5M2::decode(0x7D)));
static_assert(float_bits(E5M2::decode(0xFC)) == 0xFF800000u && E5M2::encode(bits_float(0x7F800000u)) == 0x7B);
static_assert(E8M0::decode(0) == 0x1p-127f && E8M0::encode_round_up(0x1.1p-127f) == 1 && is_nan(E8M0::decode(255)));
static_assert(F16::encode(65520.0f) == 0x7C00 && BF16::encode(1.00390625f) == 0x3F80);
static_assert(E2M1::encode(3.5f, Rounding::ties_to_zero) == 5 && E2M1::encode(5.0f, Rounding::ties_away) == 7);
static_assert(E2M1::encode(3.25f, Rounding::stochastic, 0x3FFFFFFFu) == 6 && E2M1::encode(3.25f, Rounding::stochastic, 0x40000000u) == 5);
static_assert(power_scale_code(PowerRule::ocp_floor, Element::e2m1, 1.75f) == 125 &&
              power_scale_code(PowerRule::round_up, Element::e2m1, 1.75f) == 126 &&
              power_scale_code(PowerRule::even, Element::e2m1, 1.75f) == 126);
static_assert(power_scale_code(PowerRule::ocp_floor, Element::e2m1, 6.01f) == 127 &&
              power_scale_code(PowerRule::round_up, Element::e2m1, 6.01f) == 128 &&
              power_scale_code(PowerRule::even, Element::e2m1, 6.01f) == 127);

}  // namespace finescale
