#include "check/enclosure.h"

#include <finescale/activation.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace finescale {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64 && std::numeric_limits<long double>::max_exponent >= 16384,
              "the oracle needs a long double of at least 64 bits and 15 exponent bits");

constexpr long double kUlp = std::numeric_limits<long double>::epsilon();
constexpr long double kSqrtTwoOverPi = 0.797884560802865355879892119868763737L;
constexpr long double kSqrtHalf = 0.707106781186547524400844362104849039L;

Enclosure outward(long double low, long double high) { return {low - std::fabs(low) * kUlp, high + std::fabs(high) * kUlp}; }

// silu, gelu_tanh and gelu_erf by one exp or erfc, so that the lower tail keeps its relative accuracy.
long double smooth(Activation activation, long double z) {
  if (activation == Activation::silu) return z / (1 + std::exp(-z));
  if (activation == Activation::gelu_erf) return z / 2 * std::erfc(-z * kSqrtHalf);
  return z / (1 + std::exp(-2 * kSqrtTwoOverPi * (z + 0.044715L * z * z * z)));
}

bool is_smooth(Activation activation) {
  return activation == Activation::silu || activation == Activation::gelu_tanh || activation == Activation::gelu_erf;
}

}  // namespace

long double Enclosure::magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }

Enclosure enclose(const FixedPoint& value) {
  const Leading top = value.leading();
  const long double near = std::ldexp(static_cast<long double>(top.significand), top.exponent);
  const long double far = top.exact ? near : std::ldexp(static_cast<long double>(top.significand) + 1, top.exponent);
  return top.negative ? Enclosure{-far, -near} : Enclosure{near, far};
}

Enclosure operator+(const Enclosure& x, const Enclosure& y) { return outward(x.low + y.low, x.high + y.high); }

Enclosure operator*(const Enclosure& x, const Enclosure& y) {
  const auto [low, high] = std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
  return outward(low, high);
}

Enclosure activate(Activation activation, const Enclosure& z) {
  if (activation == Activation::none) return z;
  const Enclosure positive{std::max(z.low, 0.0L), std::max(z.high, 0.0L)};
  if (activation == Activation::relu) return positive;
  if (activation == Activation::relu2) return positive * positive;
  // A relative error of 2^-60 in exp or erfc's argument of at most 2^14 (beyond, the value is below 2^-1100), plus theirs.
  const long double value = smooth(activation, z.middle());
  const long double margin = std::fabs(value) * 0x1p-44L + activation_slope(activation, z) * (z.high - z.low) + 0x1p-1100L;
  return value == 0 && z.low == 0 && z.high == 0 ? Enclosure{} : Enclosure{value - margin, value + margin};
}

// Below -1 each derivative is bounded by a function that falls with |z|:
//   silu'      = s (1 + z (1 - s)), s = 1 / (1 + exp(-z)) <= exp(z):             |silu'| <= exp(z) (1 + |z|)
//   gelu_erf'  = Phi(z) + z phi(z), Phi(z) <= exp(-z^2 / 2) / 2, phi(z) < 0.4 exp(-z^2 / 2)
//   gelu_tanh' = s + z s' with s(t) at t = 2 sqrt(2/pi) (z + 0.044715 z^3):      |.| <= exp(t) (1 + 1.6 |z| (1 + 0.1342 z^2))
long double activation_slope(Activation activation, const Enclosure& z) {
  if (activation == Activation::none) return 1;
  if (activation == Activation::relu2) return 2 * std::max(z.high, 0.0L);
  if (activation == Activation::relu) return z.high < 0 ? 0 : 1;
  const long double top = activation == Activation::silu ? 1.1L : 1.13L;  // maxima 1.0998 and 1.1290
  if (z.high > -1) return top;
  const long double distance = -z.high;
  if (activation == Activation::silu) return std::min(top, std::exp(-distance) * (1 + distance));
  if (activation == Activation::gelu_erf) return std::min(top, std::exp(-distance * distance / 2) * (0.5L + 0.4L * distance));
  const long double t = 2 * kSqrtTwoOverPi * (distance + 0.044715L * distance * distance * distance);
  return std::min(top, std::exp(-t) * (1 + 1.6L * distance * (1 + 0.1342L * distance * distance)));
}

long double activation_slack(Activation activation, const Enclosure& z, const Enclosure& value) {
  const ActivationError own = activation_error(activation);
  const double relative = is_smooth(activation) ? std::max(own.relative, 0x1p-21) : own.relative;
  const double per_input = is_smooth(activation) ? std::max(own.per_input, 0x1p-22) : own.per_input;
  const double absolute = activation == Activation::none || activation == Activation::relu ? 0 : 0x1p-126;
  return relative * value.magnitude() + per_input * z.magnitude() + absolute;
}

double lower_double(long double value) {
  const double rounded = static_cast<double>(value);
  return rounded > value ? std::nextafter(rounded, -std::numeric_limits<double>::infinity()) : rounded;
}

double upper_double(long double value) {
  const double rounded = static_cast<double>(value);
  return rounded < value ? std::nextafter(rounded, std::numeric_limits<double>::infinity()) : rounded;
}

}  // namespace finescale
