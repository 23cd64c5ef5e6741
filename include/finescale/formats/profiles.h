// Profiles: how other quantizers scale and round one block, operation by operation, so that their bytes can be reproduced.
// Profile finescale is formats/block_quantizer.h. Each line below is one FP32 operation an operator, rounded to nearest even;
// amax is the block's, g the tensor's scale as the profile itself keeps it, E the largest element.
//
//   flashrt             s = enc(max(amax/6, 1e-12))                              v = x (1/s)       ties to zero
//   modelopt            s = enc(clamp(amax/(6 g), 2^-9, 448)), 0 -> 1            v = x/(s g)
//   compressed_tensors  s = enc(min(g round(amax/6), 448)), 0 -> 1/8             v = x/(s/g)       g is an encode multiplier
//   torchao             s = enc(clamp((amax/6)/g, 2^-6, 448))                    v = x ((1/g)/s)
//   deepgemm            s = max(amax, 1e-4)/E, or the power of two above it      v = x (1/s)       FP4: ties to zero, no -0
//
// Where a system defines no bytes - a block with a NaN or Inf (flashrt defines them), a tensor of zeros where it would
// divide 0 by 0 - the rule of profile finescale holds.
#pragma once

#include <finescale/formats/block_quantizer.h>

#include <cstdint>

namespace finescale {

// What becomes of the sign of an element whose code has magnitude 0.
enum class ZeroSign : std::uint8_t {
  kept,      // the sign bit of v
  negative,  // a sign where v < 0: -0 loses it, a small negative keeps it
  dropped,
};

// The counterpart of BlockQuantizer: code = enc(x factor / divisor); one of the two is 1.
struct ProfileQuantizer {
  std::uint32_t scale_code = 0;
  float factor = 1.0f, divisor = 1.0f;
  Element element = Element::none;
  Rounding rounding = Rounding::nearest_even;
  ZeroSign zero_sign = ZeroSign::kept;

  FINESCALE_HD constexpr std::uint32_t encode(float x, std::uint32_t = 0) const {
    const float value = x * factor / divisor;
    const std::uint32_t code = finescale::encode(element, value, rounding);
    const std::uint32_t sign = 1u << (bits(element) - 1), magnitude = code & (sign - 1);
    if (is_nan(value)) return code;
    if (zero_sign == ZeroSign::dropped && magnitude == 0) return 0;
    return zero_sign == ZeroSign::negative && value == 0.0f ? 0 : code;
  }
};

// Round to an element and back: what storing an intermediate in it does.
FINESCALE_HD constexpr float rounded_to(Element element, float value) { return decode(element, encode(element, value)); }

// The number that the quantizer sees. flashrt's bf16 entry is its f16 entry after a cast.
FINESCALE_HD constexpr float profile_input(Profile profile, Element from, float x) {
  return profile == Profile::flashrt && from == Element::bf16 ? rounded_to(Element::f16, x) : x;
}

// The amax of a block, folded from 0. flashrt's comparison never lets a NaN in.
FINESCALE_HD constexpr float profile_amax(Profile profile, float amax, float x) {
  return profile == Profile::flashrt && is_nan(x) ? amax : block_amax(amax, x);
}

// The tensor's scale as the profile keeps it: a decode multiplier, but for compressed_tensors an encode multiplier, (1/amax) 2688
// formed in the type of the input; where that overflows it is 1.
FINESCALE_HD constexpr float profile_global(const Format& format, Profile profile, Element from, float amax) {
  if (profile != Profile::compressed_tensors) return amax == 0.0f ? 1.0f : amax / largest_value(format);
  const float smallest = from == Element::f16 ? 0x1p-14f : kSmallestNormal;
  const float inverse = rounded_to(from, 1.0f / (amax < smallest ? smallest : amax));
  const float g = rounded_to(from, inverse * largest_value(format));
  return is_finite(g) ? g : 1.0f;
}

// Between that and the decode multiplier that a matrix carries; the same both ways.
FINESCALE_HD constexpr float profile_decode_global(Profile profile, float g) {
  return profile == Profile::compressed_tensors ? 1.0f / g : g;
}

namespace profile_detail {

FINESCALE_HD constexpr float clamped(float value, float low, float high) { return value < low ? low : value > high ? high : value; }

FINESCALE_HD constexpr ProfileQuantizer modelopt(float amax, float g) {
  const float scale = amax / (6.0f * g);
  const std::uint32_t code = E4M3::encode(clamped(scale == 0.0f ? 1.0f : scale, 0x1p-9f, 448.0f));
  return {.scale_code = code, .divisor = E4M3::decode(code) * g, .zero_sign = ZeroSign::negative};
}

FINESCALE_HD constexpr ProfileQuantizer compressed_tensors(Element from, float amax, float g) {
  const std::uint32_t rounded = E4M3::encode(g * rounded_to(from, amax / 6.0f));
  const std::uint32_t code = rounded == 0 ? 0x20u : rounded;
  return {.scale_code = code, .divisor = E4M3::decode(code) / g, .zero_sign = ZeroSign::negative};
}

FINESCALE_HD constexpr ProfileQuantizer torchao(float amax, float g) {
  const std::uint32_t code = E4M3::encode(clamped(amax / 6.0f / g, 0x1p-6f, 448.0f));
  return {.scale_code = code, .factor = 1.0f / g / E4M3::decode(code)};
}

FINESCALE_HD constexpr ProfileQuantizer flashrt(float amax) {
  const float scale = amax / 6.0f;
  const std::uint32_t code = E4M3::encode(scale < 1e-12f ? 1e-12f : scale);
  return {.scale_code = code, .factor = 1.0f / E4M3::decode(code), .rounding = Rounding::ties_to_zero, .zero_sign = ZeroSign::negative};
}

FINESCALE_HD constexpr ProfileQuantizer deepgemm(const Format& format, bool pow2, float amax) {
  const bool fp4 = format.element == Element::e2m1, power = pow2 || format.scale == Element::e8m0;
  const float quotient = (amax < 1e-4f ? 1e-4f : amax) / max_value(format.element);
  const float scale = power ? round_up_to_power_of_two(quotient) : quotient;
  return {.scale_code = encode(format.scale, scale),
          .factor = 1.0f / scale,
          .rounding = fp4 ? Rounding::ties_to_zero : Rounding::nearest_even,
          .zero_sign = fp4 ? ZeroSign::dropped : ZeroSign::kept};
}

FINESCALE_HD constexpr ProfileQuantizer scaled(const Format& format, const Recipe& recipe, Element from, float amax, float g) {
  switch (recipe.profile) {
    case Profile::finescale: break;
    case Profile::flashrt: return flashrt(amax);
    case Profile::modelopt: return modelopt(amax, g);
    case Profile::compressed_tensors: return compressed_tensors(from, amax, g);
    case Profile::torchao: return torchao(amax, g);
    case Profile::deepgemm: return deepgemm(format, recipe.pow2, amax);
  }
  return {};
}

}  // namespace profile_detail

// amax: of profile_amax; g: of profile_global, or profile_decode_global of a given one; 1 where there is none.
FINESCALE_HD constexpr ProfileQuantizer profile_quantizer(const Format& format, const Recipe& recipe, Element from, float amax, float g) {
  ProfileQuantizer block = profile_detail::scaled(format, recipe, from, amax, g);
  if (recipe.profile != Profile::flashrt && !is_finite(amax)) {
    block.scale_code = nan_code(format.scale);
    block.divisor = bits_float(0x7FC00000u);
  }
  block.element = format.element;
  return block;
}

}  // namespace finescale
