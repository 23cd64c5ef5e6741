// Element encodings: which number each code means, and which code a number gets.
//
// E2M1 (FP4), E4M3 and E5M2 (FP8): OCP OFP8 and Microscaling specifications. E8M0: a power of two, OCP MX v1.0.
// f16 and bf16: IEEE binary16 and its truncated-binary32 sibling. Decoding is exact; encoding rounds once.
#pragma once

#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

enum class Element : std::uint8_t { none, f32, f16, bf16, e4m3, e5m2, e2m1, e8m0 };

// How a value between two codes is rounded. The last needs a random word per value.
enum class Rounding : std::uint8_t { nearest_even, ties_to_zero, ties_away, stochastic };

// How the FP32 scale of an E8M0 block becomes a power of two (contract A2).
enum class PowerRule : std::uint8_t { round_up, ocp_floor, even };

// What encode does beyond the largest finite code, and whether the code after it means Inf.
enum class Overflow : std::uint8_t { saturate, saturate_knows_infinity, infinity };

// A float of 1 sign bit, kExponent exponent bits and kMantissa mantissa bits, bias 2^(kExponent-1) - 1.
// kMaxCode is the largest finite magnitude; codes above it are Inf or NaN.
template <int kExponent, int kMantissa, std::uint32_t kMaxCode, std::uint32_t kNanCode, Overflow kOverflow>
struct SmallFloat {
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;
  static constexpr std::uint32_t kSignBit = 1u << (kBits - 1);
  static constexpr std::uint32_t kMax = kMaxCode;
  static constexpr std::uint32_t kNan = kNanCode;

  FINESCALE_HD static constexpr float decode(std::uint32_t code) {
    const std::uint32_t magnitude = code & (kSignBit - 1);
    const std::uint32_t sign = (code & kSignBit) != 0 ? 0x80000000u : 0u;
    if (magnitude > kMaxCode) {
      const bool infinite = kOverflow != Overflow::saturate && magnitude == kMaxCode + 1;
      return bits_float(sign | (infinite ? 0x7F800000u : 0x7FC00000u));
    }
    return bits_float(sign | magnitude_bits(magnitude));
  }

  // NaN gives kNan without a sign; small negatives keep their sign. `random` is read by stochastic rounding only:
  // the upper neighbour is taken where random * 2^-32 < the fraction of the way to it.
  FINESCALE_HD static constexpr std::uint32_t encode(float value, Rounding rounding = Rounding::nearest_even,
                                                     std::uint32_t random = 0) {
    if (is_nan(value)) return kNan;
    const std::uint32_t bits = float_bits(value);
    const std::uint32_t sign = (bits >> 31) != 0 ? kSignBit : 0u;
    const std::uint32_t code = encode_magnitude(bits & 0x7FFFFFFFu, rounding, random);
    if (code <= kMaxCode) return sign | code;
    return sign | (kOverflow == Overflow::infinity ? kMaxCode + 1 : kMaxCode);
  }

 private:
  FINESCALE_HD static constexpr std::uint32_t magnitude_bits(std::uint32_t magnitude) {
    if constexpr (kExponent == 8) return magnitude << (23 - kMantissa);
    const int exponent = static_cast<int>(magnitude >> kMantissa);
    std::uint32_t fraction = magnitude & ((1u << kMantissa) - 1);
    if (exponent != 0) {
      return (static_cast<std::uint32_t>(exponent - kBias + 127) << 23) | (fraction << (23 - kMantissa));
    }
    if (fraction == 0) return 0;
    int shifted = 0;  // a subnormal code is a normal FP32 number
    while ((fraction & (1u << kMantissa)) == 0) {
      fraction <<= 1;
      ++shifted;
    }
    fraction &= (1u << kMantissa) - 1;
    return (static_cast<std::uint32_t>(kMinExponent - shifted + 127) << 23) | (fraction << (23 - kMantissa));
  }

  // The code of |value|, which may exceed kMaxCode. The grid's step at |value| is 2^(step_exponent - kMantissa).
  FINESCALE_HD static constexpr std::uint32_t encode_magnitude(std::uint32_t bits, Rounding rounding, std::uint32_t random) {
    if (bits >= 0x7F800000u) return kMaxCode + 1;
    const bool subnormal = bits < 0x00800000u;
    const int exponent = subnormal ? -126 : static_cast<int>(bits >> 23) - 127;
    const std::uint64_t significand = subnormal ? bits : (bits & 0x7FFFFFu) | 0x800000u;  // value = significand * 2^(exponent - 23)
    const int step_exponent = exponent < kMinExponent ? kMinExponent : exponent;
    const int unbounded_shift = 23 - kMantissa + step_exponent - exponent;
    const int shift = unbounded_shift > 60 ? 60 : unbounded_shift;  // past 24 only "smaller than a half" matters
    const std::uint64_t whole = significand >> shift;
    const std::uint64_t rest = significand - (whole << shift);
    const std::uint32_t below = (static_cast<std::uint32_t>(step_exponent - kMinExponent) << kMantissa) + static_cast<std::uint32_t>(whole);
    return below + (rounds_up(whole, rest, shift, rounding, random) ? 1u : 0u);
  }

  FINESCALE_HD static constexpr bool rounds_up(std::uint64_t whole, std::uint64_t rest, int shift, Rounding rounding,
                                               std::uint32_t random) {
    if (rest == 0) return false;
    if (rounding == Rounding::stochastic) {
      // random / 2^32 < rest / 2^shift, without a product that overflows: rest < 2^24 * 2^... < 2^shift.
      return shift <= 32 ? random < (rest << (32 - shift)) : static_cast<std::uint64_t>(random) << (shift - 32) < rest;
    }
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    if (rest != half) return rest > half;
    if (rounding == Rounding::nearest_even) return (whole & 1) != 0;
    return rounding == Rounding::ties_away;
  }
};

using E2M1 = SmallFloat<2, 1, 0x7, 0x7, Overflow::saturate>;            // 0 .5 1 1.5 2 3 4 6; no Inf, no NaN
using E4M3 = SmallFloat<4, 3, 0x7E, 0x7F, Overflow::saturate>;          // max 448, no Inf
using E5M2 = SmallFloat<5, 2, 0x7B, 0x7F, Overflow::saturate>;          // max 57344
using F16 = SmallFloat<5, 10, 0x7BFF, 0x7E00, Overflow::infinity>;
using BF16 = SmallFloat<8, 7, 0x7F7F, 0x7FC0, Overflow::infinity>;

// A power of two: 2^(code - 127), code 255 is NaN; there is no zero, no sign and no Inf.
struct E8M0 {
  static constexpr int kBits = 8;
  static constexpr std::uint32_t kMax = 254;
  static constexpr std::uint32_t kNan = 255;

  FINESCALE_HD static constexpr float decode(std::uint32_t code) {
    if (code == kNan) return bits_float(0x7FC00000u);
    return bits_float(code == 0 ? 0x00400000u : code << 23);  // 2^-127 is an FP32 subnormal
  }

  // The smallest power of two >= value (contract B1.3): 0 and anything up to 2^-127 give code 0, the rest caps at 254.
  FINESCALE_HD static constexpr std::uint32_t encode_round_up(float value) {
    if (is_nan(value)) return kNan;
    const std::uint32_t bits = float_bits(value) & 0x7FFFFFFFu;
    const std::uint32_t exponent = bits >> 23, mantissa = bits & 0x7FFFFFu;
    const bool up = mantissa != 0 && !(exponent == 0 && mantissa <= 0x400000u);
    const std::uint32_t code = exponent + (up ? 1u : 0u);
    return code > kMax ? kMax : code;
  }
};

// One IEEE binary32 stored as it is, so that f32 can stand where an encoding does.
struct F32 {
  static constexpr int kBits = 32;
  FINESCALE_HD static constexpr float decode(std::uint32_t code) { return bits_float(code); }
  FINESCALE_HD static constexpr std::uint32_t encode(float value, Rounding = Rounding::nearest_even, std::uint32_t = 0) {
    return float_bits(value);
  }
};

FINESCALE_HD constexpr int bits(Element element) {
  switch (element) {
    case Element::f32: return 32;
    case Element::f16:
    case Element::bf16: return 16;
    case Element::e4m3:
    case Element::e5m2:
    case Element::e8m0: return 8;
    case Element::e2m1: return 4;
    case Element::none: break;
  }
  return 0;
}

// The largest finite magnitude.
FINESCALE_HD constexpr float max_value(Element element) {
  switch (element) {
    case Element::f32: return 3.40282347e38f;
    case Element::f16: return F16::decode(F16::kMax);
    case Element::bf16: return BF16::decode(BF16::kMax);
    case Element::e4m3: return E4M3::decode(E4M3::kMax);
    case Element::e5m2: return E5M2::decode(E5M2::kMax);
    case Element::e2m1: return E2M1::decode(E2M1::kMax);
    case Element::e8m0: return E8M0::decode(E8M0::kMax);
    case Element::none: break;
  }
  return 0.0f;
}

FINESCALE_HD constexpr float decode(Element element, std::uint32_t code) {
  switch (element) {
    case Element::f32: return F32::decode(code);
    case Element::f16: return F16::decode(code);
    case Element::bf16: return BF16::decode(code);
    case Element::e4m3: return E4M3::decode(code);
    case Element::e5m2: return E5M2::decode(code);
    case Element::e2m1: return E2M1::decode(code);
    case Element::e8m0: return E8M0::decode(code);
    case Element::none: break;
  }
  return 1.0f;  // an absent scale
}

FINESCALE_HD constexpr std::uint32_t encode(Element element, float value, Rounding rounding = Rounding::nearest_even,
                                            std::uint32_t random = 0) {
  switch (element) {
    case Element::f32: return F32::encode(value);
    case Element::f16: return F16::encode(value, rounding, random);
    case Element::bf16: return BF16::encode(value, rounding, random);
    case Element::e4m3: return E4M3::encode(value, rounding, random);
    case Element::e5m2: return E5M2::encode(value, rounding, random);
    case Element::e2m1: return E2M1::encode(value, rounding, random);
    case Element::e8m0: return E8M0::encode_round_up(value);
    case Element::none: break;
  }
  return 0;
}

static_assert(E2M1::decode(5) == 3.0f && E2M1::decode(15) == -6.0f && E2M1::encode(2.5f) == 4 && E2M1::encode(-0.1f) == 8);
static_assert(E4M3::decode(0x01) == 0x1p-9f && E4M3::encode(464.1f) == 0x7E && E4M3::encode(1.0f / 6.0f) == 0x23);
static_assert(E5M2::decode(0x7B) == 57344.0f && E5M2::encode(1e9f) == 0x7B && is_nan(E5M2::decode(0x7D)));
static_assert(E8M0::decode(0) == 0x1p-127f && E8M0::encode_round_up(0x1.1p-127f) == 1 && is_nan(E8M0::decode(255)));
static_assert(F16::encode(65520.0f) == 0x7C00 && BF16::encode(1.00390625f) == 0x3F80);

}  // namespace finescale
