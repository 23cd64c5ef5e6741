// How one block is quantized by profile finescale (docs/quantizers.md): the same few lines for the reference, every kernel, and
// products that write a block format. Other profiles: formats/profiles.h.
//
//   scale = enc(amax / (E g))     code = enc(x / (scale g))     E, S = largest element, largest block scale
//
// Each product, quotient and sum is one FP32 operation, IEEE, rounded once to nearest even. An absent factor g is passed
// as 1: multiplying by it changes no bit.
#pragma once

#include <finescale/formats/format.h>
#include <finescale/formats/recipe.h>

#include <cstdint>

namespace finescale {

inline constexpr float kSmallestNormal = 0x1p-126f;

// The amax of a block, folded over its elements from 0: the largest magnitude, not finite where any element is not.
FINESCALE_HD constexpr float block_amax(float amax, float x) {
  const std::uint32_t magnitude = float_bits(x) & 0x7FFFFFFFu;
  return magnitude > float_bits(amax) ? bits_float(magnitude) : amax;
}

// The amax behind a global scale: elements that are not finite do not count.
FINESCALE_HD constexpr float global_amax(float amax, float x) { return is_finite(x) ? block_amax(amax, x) : amax; }

// E S: what a block of a two-level format reaches at g = 1; E where there are no block scales, or scales so wide that
// they need no global.
FINESCALE_HD constexpr float largest_value(const Format& format) {
  const bool narrow = format.scale == Element::e4m3 || format.scale == Element::e5m2 || format.scale == Element::f16;
  return narrow ? max_value(format.element) * max_value(format.scale) : max_value(format.element);
}

// g of a tensor, batch or row segment, from its global_amax. A tensor-wide format whose element has no NaN code shows an
// element that is not finite in g itself.
FINESCALE_HD constexpr float global_scale(const Format& format, float amax, bool all_finite = true) {
  if (!all_finite && !format.has_scales() && format.element == Element::e2m1) return bits_float(0x7FC00000u);
  if (amax == 0.0f) return 1.0f;
  const float quotient = amax / largest_value(format);
  return quotient < kSmallestNormal ? kSmallestNormal : quotient;
}

// Whether a given g may be used. Where it cannot be refused, because only the device knows it, scales become NaN.
FINESCALE_HD constexpr bool is_valid_global(const Format& format, float g) {
  return g >= kSmallestNormal && is_finite(g) && is_finite(largest_value(format) * g);
}

// The smallest power of two >= value, for finite value >= 0; 0 stays 0.
FINESCALE_HD constexpr float round_up_to_power_of_two(float value) {
  const std::uint32_t bits = float_bits(value);
  if (bits >= 0x00800000u) return bits_float((bits + 0x7FFFFFu) & 0x7F800000u);
  std::uint32_t power = bits != 0 ? 1u : 0u;
  while (power < bits) power <<= 1;
  return bits_float(power);
}

// The NaN of a scale encoding, without a sign.
FINESCALE_HD constexpr std::uint32_t nan_code(Element scale) {
  return scale == Element::e8m0 ? E8M0::kNan : encode(scale, bits_float(0x7FC00000u));
}

// enc(amax / (divisor g)) in the block scale's encoding; divisor = E by default, 4 for the second try of four_six.
FINESCALE_HD constexpr std::uint32_t scale_code_for(const Format& format, const Recipe& recipe, float amax, float divisor, float g) {
  if (!is_finite(amax) || !is_valid_global(format, g)) return nan_code(format.scale);
  if (format.scale == Element::e8m0) return power_scale_code(recipe.power, format.element, amax);
  const float scale = amax / (divisor * g);
  if (format.scale == Element::f32) return float_bits(recipe.pow2 ? round_up_to_power_of_two(scale) : scale);
  return encode(format.scale, scale);
}

// The block scale that amax alone gives (ScaleSearch::max). amax: of block_amax.
FINESCALE_HD constexpr std::uint32_t block_scale_code(const Format& format, const Recipe& recipe, float amax, float g) {
  return format.has_scales() ? scale_code_for(format, recipe, amax, max_value(format.element), g) : 0u;
}

// A block whose scale is chosen: what its elements are divided by.
struct BlockQuantizer {
  std::uint32_t scale_code = 0;  // to store; 0 and unused without block scales
  float divisor = 1.0f;          // scale * g; 0: every code is +0; NaN: every code is that of NaN
  Element element = Element::none;
  Rounding rounding = Rounding::nearest_even;
  bool tensor_wide = false;  // no block scale shows an element that is not finite: it becomes NaN itself

  // `random` is read by stochastic rounding only.
  FINESCALE_HD constexpr std::uint32_t encode(float x, std::uint32_t random = 0) const {
    if (divisor == 0.0f) return 0;
    const float quotient = tensor_wide && !is_finite(x) ? bits_float(0x7FC00000u) : x / divisor;
    return finescale::encode(element, quotient, rounding, random);
  }
};

FINESCALE_HD constexpr BlockQuantizer block_quantizer(const Format& format, const Recipe& recipe, std::uint32_t scale_code, float g) {
  BlockQuantizer block{scale_code, g, format.element, recipe.rounding, !format.has_scales()};
  if (format.has_scales()) block.divisor = decode(format.scale, scale_code) * g;
  if (!is_valid_global(format, g)) block.divisor = bits_float(0x7FC00000u);
  return block;
}

// The code of one element, for code that keeps no BlockQuantizer. block_scale: decoded, 1 where the format has none.
FINESCALE_HD constexpr std::uint32_t element_code(const Format& format, const Recipe& recipe, float x, float block_scale, float g,
                                                  std::uint32_t random = 0) {
  const float divisor = is_valid_global(format, g) ? block_scale * g : bits_float(0x7FC00000u);
  return BlockQuantizer{0, divisor, format.element, recipe.rounding, !format.has_scales()}.encode(x, random);
}

// Better scales: nvfp4's shape only.
inline constexpr int kSearchBlock = 16;

FINESCALE_HD constexpr bool may_search(const Format& format) {
  return format.element == Element::e2m1 && format.scale == Element::e4m3 && format.block_rows == 1 && format.block_cols == kSearchBlock;
}

// sum of (x - q (scale g))^2 with q rounded to nearest even, no FMA, as a tree that adds i + 8, + 4, + 2, + 1; `count` real elements.
FINESCALE_HD constexpr float block_error(const Format& format, const float* x, int count, std::uint32_t scale_code, float g) {
  const BlockQuantizer block = block_quantizer(format, Recipe{}, scale_code, g);
  float errors[kSearchBlock] = {};
  for (int i = 0; i < count; ++i) {
    const float quantized = decode(format.element, block.encode(x[i])) * block.divisor;
    const float difference = x[i] - quantized;
    errors[i] = difference * difference;
  }
  for (int step = kSearchBlock / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) errors[i] = errors[i] + errors[i + step];
  }
  return errors[0];
}

// The scale code of a block by recipe.search. x: its `count` elements, at most kSearchBlock, read by a search only.
// The smallest error wins; ties go to the default scale, then to the smaller code.
FINESCALE_HD constexpr std::uint32_t searched_scale_code(const Format& format, const Recipe& recipe, const float* x, int count, float amax,
                                                         float g) {
  std::uint32_t best = block_scale_code(format, recipe, amax, g);
  if (recipe.search == ScaleSearch::max || best == nan_code(format.scale)) return best;
  const std::uint32_t four = scale_code_for(format, recipe, amax, 4.0f, g);
  const bool every_code = recipe.search == ScaleSearch::mse;
  const std::uint32_t last = every_code ? E4M3::kMax : four;
  float least = block_error(format, x, count, best, g);
  for (std::uint32_t code = every_code ? 1u : four; code <= last; ++code) {
    const float error = block_error(format, x, count, code, g);
    if (error < least) {
      least = error;
      best = code;
    }
  }
  return best;
}

// The way back: element * block scale, then * g, each rounded once. A NaN has one form, so that bytes agree everywhere.
FINESCALE_HD constexpr float dequantized_value(float element, float block_scale, float g) {
  const float value = element * block_scale * g;
  return is_nan(value) ? bits_float(0x7FC00000u) : value;
}

static_assert(float_bits(global_scale(kNvfp4, 1.0f)) == 0x39C30C31u && global_scale(kNvfp4, 0.0f) == 1.0f);
static_assert(float_bits(global_scale(kNvfp4, 3.0f)) == 0x3A924925u);
static_assert(block_scale_code(kNvfp4, Recipe{}, 3.0f, 1.0f) == 0x30 && block_scale_code(kNvfp4, Recipe{}, 4000.0f, 1.0f) == 0x7E);
static_assert(element_code(kNvfp4, Recipe{}, -0.375f, 0.5f, 1.0f) == 0xA && element_code(kNvfp4, Recipe{}, -1.0f, 0.0f, 1.0f) == 0);
static_assert(round_up_to_power_of_two(0x1.8p-148f) == 0x1p-147f && round_up_to_power_of_two(3.0f) == 4.0f &&
              round_up_to_power_of_two(4.0f) == 4.0f);

}  // namespace finescale
