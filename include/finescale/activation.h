// Activations, and the exp, tanh and erf under them: fixed sequences of FP32 operations, each rounded once to nearest
// even, none fused. The same bits on every host and device, where the compiler keeps to IEEE arithmetic
// (-ffp-contract=off; nvcc --fmad=false -ftz=false -prec-div=true). No call to a mathematics library.
//
//   gelu_tanh(z) = z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))    silu(z)  = z / (1 + exp(-z))
//   gelu_erf(z)  = z/2 (1 + erf(z / sqrt(2)))                       relu2(z) = max(z, 0)^2
#pragma once

#include <finescale/epilogue.h>
#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

// Largest distance from the exact value in units in the last place of the result, over all floats (measured 0.98, 1.34, 1.47; tests/formats
// sweeps them).
inline constexpr double kExpMaxUlp = 1.5, kTanhMaxUlp = 1.5, kErfMaxUlp = 1.5;

namespace activation_detail {

inline constexpr float kNan = bits_float(0x7FC00000u), kInfinity = bits_float(0x7F800000u);

FINESCALE_HD constexpr float magnitude(float x) { return bits_float(float_bits(x) & 0x7FFFFFFFu); }
FINESCALE_HD constexpr float with_sign_of(float x, float sign) { return bits_float(float_bits(x) | (float_bits(sign) & 0x80000000u)); }
// 2^exponent, -126 <= exponent <= 127.
FINESCALE_HD constexpr float power_of_two(int exponent) { return bits_float(static_cast<std::uint32_t>(exponent + 127) << 23); }

}  // namespace activation_detail

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2. The polynomial is minimax for (exp(r) - 1 - r) / r^2.
FINESCALE_HD constexpr float exp_f32(float x) {
  if (is_nan(x)) return activation_detail::kNan;
  if (x > 89.0f) return activation_detail::kInfinity;
  if (x < -104.0f) return 0.0f;
  constexpr float kRound = 0x1.8p23f;  // added and taken away: rounds to an integer
  const float n = x * 0x1.715476p+0f + kRound - kRound;
  const float r = x - n * 0x1.63p-1f - n * -0x1.bd0106p-13f;  // ln 2 in two parts; n times the first is exact
  float p = 0x1.6db462p-10f;
  p = p * r + 0x1.123b7ep-7f;
  p = p * r + 0x1.55545ep-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0.5f;
  const float y = r * r * p + r + 1.0f;
  const int exponent = static_cast<int>(n), half = exponent / 2;  // two factors: the first is exact, the second rounds once
  return y * activation_detail::power_of_two(half) * activation_detail::power_of_two(exponent - half);
}

// |x| < 5/8: x + x^3 p(x^2), p minimax for (tanh(x) / x - 1) / x^2. Beyond: 1 - 2 / (exp(2 |x|) + 1).
FINESCALE_HD constexpr float tanh_f32(float x) {
  if (is_nan(x)) return activation_detail::kNan;
  const float a = activation_detail::magnitude(x);
  if (a < 0.625f) {
    const float t = a * a;
    float p = 0x1.16429ep-9f;
    p = p * t - 0x1.0b460cp-7f;
    p = p * t + 0x1.6369e8p-6f;
    p = p * t - 0x1.b9ebb8p-5f;
    p = p * t + 0x1.111058p-3f;
    p = p * t - 0x1.555554p-2f;
    return activation_detail::with_sign_of(a + a * t * p, x);
  }
  return activation_detail::with_sign_of(1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f), x);
}

// |x| < 15/16: x + x p(x^2), p minimax for erf(x) / x - 1. Beyond: 1 - exp(-q(|x|)), q minimax for -log(erfc), to 4;
// from there on erf rounds to 1.
FINESCALE_HD constexpr float erf_f32(float x) {
  if (is_nan(x)) return activation_detail::kNan;
  const float a = activation_detail::magnitude(x);
  if (a < 0.9375f) {
    const float t = x * x;
    float p = 0x1.58f066p-14f;
    p = p * t - 0x1.a918d8p-11f;
    p = p * t + 0x1.54a7d4p-8f;
    p = p * t - 0x1.b80b66p-6f;
    p = p * t + 0x1.ce2de6p-4f;
    p = p * t - 0x1.812742p-2f;
    p = p * t + 0x1.06eba8p-3f;
    return x + x * p;
  }
  if (a >= 4.0f) return activation_detail::with_sign_of(1.0f, x);
  float q = 0x1.44e756p-16f;
  q = q * a - 0x1.b13634p-12f;
  q = q * a + 0x1.0a3c08p-8f;
  q = q * a - 0x1.96aeb4p-6f;
  q = q * a + 0x1.b9930ap-4f;
  q = q * a + 0x1.447fb4p-1f;
  q = q * a + 0x1.21196ap+0f;
  q = q * a - 0x1.0d300ep-13f;
  return activation_detail::with_sign_of(1.0f - exp_f32(-q), x);
}

// NaN gives one NaN, so that its bits agree too. At -Inf each activation is its limit, -0: a sum that overflowed FP32 still
// gives the right output.
FINESCALE_HD constexpr float gelu_tanh(float z) {
  if (is_nan(z)) return activation_detail::kNan;
  const float cube = z * z * z;
  const float t = 1.0f + tanh_f32(0x1.988454p-1f * (z + 0.044715f * cube));
  return t == 0.0f ? -0.0f : 0.5f * z * t;
}

FINESCALE_HD constexpr float gelu_erf(float z) {
  if (is_nan(z)) return activation_detail::kNan;
  const float t = 1.0f + erf_f32(z * 0x1.6a09e6p-1f);
  return t == 0.0f ? -0.0f : 0.5f * z * t;
}

FINESCALE_HD constexpr float silu(float z) {
  if (is_nan(z)) return activation_detail::kNan;
  const float t = 1.0f + exp_f32(-z);
  return t == activation_detail::kInfinity ? -0.0f : z / t;
}

FINESCALE_HD constexpr float relu(float z) {
  if (is_nan(z)) return activation_detail::kNan;
  return z > 0.0f ? z : 0.0f;
}

FINESCALE_HD constexpr float relu2(float z) {
  if (is_nan(z)) return activation_detail::kNan;
  return z > 0.0f ? z * z : 0.0f;
}

FINESCALE_HD constexpr float activate(Activation activation, float z) {
  switch (activation) {
    case Activation::none: break;
    case Activation::gelu_tanh: return gelu_tanh(z);
    case Activation::gelu_erf: return gelu_erf(z);
    case Activation::silu: return silu(z);
    case Activation::relu: return relu(z);
    case Activation::relu2: return relu2(z);
  }
  return z;
}

// |activate(act, z) - act(z)| <= relative |act(z)| + per_input |z| + absolute, for every finite z with a finite result.
struct ActivationError {
  double relative = 0, per_input = 0, absolute = 0;
};

constexpr ActivationError activation_error(Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::relu: break;
    case Activation::gelu_tanh:
    case Activation::gelu_erf: return {0x1p-24, 0x1p-23, 0x1p-149};  // 1 + tanh cancels: the error follows z, not the result
    case Activation::silu: return {0x1p-22, 0x1p-127, 0x1p-149};     // exp(-z) overflows where silu(z) is about 2^-127 z
    case Activation::relu2: return {0x1p-24, 0, 0x1p-150};
  }
  return {};
}

static_assert(exp_f32(0.0f) == 1.0f && exp_f32(1.0f) == 0x1.5bf0a8p+1f && tanh_f32(0.0f) == 0.0f && erf_f32(5.0f) == 1.0f);
static_assert(gelu_erf(0.0f) == 0.0f && silu(-200.0f) == 0.0f && relu2(3.0f) == 9.0f && relu(-1.0f) == 0.0f);

}  // namespace finescale
