#include "check/judge.h"

#include "check/error_model.h"

#include <finescale/formats/block_quantizer.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace finescale {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The FP32 values that a right kernel may have before it stores.
struct FloatRange {
  float low = 0, high = 0;
};

float float_down(long double value) {
  const float rounded = static_cast<float>(value);
  return rounded > value ? std::nextafter(rounded, -kInfinity) : rounded;
}

FloatRange allowed_values(const ExactValue& exact) {
  if (!exact.finite) return {static_cast<float>(exact.special), static_cast<float>(exact.special)};
  constexpr float kMost = max_value(Element::f32);
  return {std::clamp(float_down(exact.value.low - exact.error), -kMost, kMost),
          std::clamp(-float_down(-(exact.value.high + exact.error)), -kMost, kMost)};
}

bool surely_not_finite(const ExactValue& exact) {
  if (!exact.finite) return true;
  const double overflow = output_rounding(Element::f32).overflow;
  return exact.value.low - exact.error >= overflow || exact.value.high + exact.error <= -overflow;
}

bool maybe_not_finite(const ExactValue& exact) {
  return exact.may_overflow || !exact.finite || exact.value.magnitude() + exact.error >= output_rounding(Element::f32).overflow;
}

// Codes of a float format in the order of their values; both zeros are 0.
std::int64_t ordered(Element element, std::uint32_t code) {
  if (element == Element::e8m0) return code;
  const std::uint32_t sign = 1u << (bits(element) - 1);
  return (code & sign) != 0 ? -static_cast<std::int64_t>(code & (sign - 1)) : static_cast<std::int64_t>(code);
}

double outside(std::int64_t value, std::int64_t low, std::int64_t high) {
  const std::int64_t distance = std::max<std::int64_t>({0, low - value, value - high});
  return distance == 0 ? 0.0 : 1.0 + static_cast<double>(distance);
}

bool is_nan_code(Element element, std::uint32_t code) { return is_nan(decode(element, code)); }

// Smallest and largest amax of the block; a magnitude of 0 where the interval holds it.
FloatRange allowed_amax(std::span<const ExactValue> block) {
  FloatRange amax;
  for (const ExactValue& exact : block) {
    const FloatRange value = allowed_values(exact);
    const float least = value.low > 0 ? value.low : value.high < 0 ? -value.high : 0.0f;
    amax.low = block_amax(amax.low, least);
    amax.high = block_amax(amax.high, std::max(std::fabs(value.low), std::fabs(value.high)));
  }
  return amax;
}

double judge_scale(const Format& format, const Recipe& recipe, const ObservedBlock& observed) {
  const auto& block = observed.exact;
  const bool nan = is_nan_code(format.scale, observed.scale_code);
  if (!is_valid_global(format, observed.global) || std::any_of(block.begin(), block.end(), surely_not_finite)) return nan ? 0.0 : kWrong;
  if (nan) return std::any_of(block.begin(), block.end(), maybe_not_finite) ? 0.0 : kWrong;
  const FloatRange amax = allowed_amax(block);
  const std::uint32_t low = block_scale_code(format, recipe, amax.low, observed.global);
  const std::uint32_t high = block_scale_code(format, recipe, amax.high, observed.global);
  return outside(ordered(format.scale, observed.scale_code), ordered(format.scale, low), ordered(format.scale, high));
}

double judge_element(const Format& format, const Recipe& recipe, const ExactValue& exact, std::uint32_t code, float scale, float global) {
  const bool is_infinity = code == element_code(format, recipe, kInfinity, scale, global);
  if (surely_not_finite(exact)) return is_infinity ? 0.0 : kWrong;
  if (is_infinity && maybe_not_finite(exact)) return 0.0;
  const FloatRange value = allowed_values(exact);
  const std::uint32_t low = element_code(format, recipe, value.low, scale, global);
  const std::uint32_t high = element_code(format, recipe, value.high, scale, global);
  if (code == low || code == high) return 0.0;
  if (is_nan_code(format.element, low) || is_nan_code(format.element, code)) return kWrong;
  return outside(ordered(format.element, code), ordered(format.element, low), ordered(format.element, high));
}

}  // namespace

double output_bound(const ExactValue& exact, Element element) {
  const OutputRounding out = output_rounding(element);
  return static_cast<double>(out.unit * exact.value.magnitude() + out.eta + (1 + out.unit) * exact.error);
}

double judge_plain(const ExactValue& exact, Element element, float observed) {
  if (!std::isfinite(observed) && exact.may_overflow) return 0.0;
  if (!exact.finite) {
    const bool same = std::isnan(exact.special) ? std::isnan(observed) : observed == static_cast<float>(exact.special);
    return same ? 0.0 : kWrong;
  }
  if (std::isnan(observed)) return kWrong;
  const double overflow = output_rounding(element).overflow;
  const long double low = exact.value.low - exact.error, high = exact.value.high + exact.error;
  if (std::isinf(observed)) return (observed > 0 ? high >= overflow : low <= -overflow) ? 0.0 : kWrong;
  if (low >= overflow || high <= -overflow) return kWrong;
  const long double off = std::max({0.0L, exact.value.low - observed, observed - exact.value.high});
  return off == 0 ? 0.0 : static_cast<double>(off / output_bound(exact, element));
}

BlockVerdict judge_block(const Format& format, const Recipe& recipe, const ObservedBlock& observed) {
  BlockVerdict verdict;
  float scale = 1.0f;
  if (format.has_scales()) {
    verdict = {judge_scale(format, recipe, observed), 0};
    scale = decode(format.scale, observed.scale_code);
  }
  for (std::size_t i = 0; i < observed.codes.size(); ++i) {
    const double wrong = judge_element(format, recipe, observed.exact[i], observed.codes[i], scale, observed.global);
    if (wrong > verdict.worst) verdict = {wrong, static_cast<std::int64_t>(i)};
  }
  return verdict;
}

}  // namespace finescale
