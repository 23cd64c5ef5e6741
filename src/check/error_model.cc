#include "check/error_model.h"

#include <algorithm>
#include <cmath>

namespace finescale {
namespace {

// Columns after which a kernel that keeps fewer than FP32's bits must add its sum to FP32 (docs/numerics.md).
constexpr std::int64_t kPromotion = 128;
constexpr int kFp32Bits = 24;
constexpr double kFinishRoundings = 8;

// Relative error of one addition: the rounding of the result, and what two addends lose when they are aligned.
double step_error(const Accumulation& model) {
  const double unit = model.truncates ? 2 * kUnit : kUnit;
  if (model.fraction_bits == kFp32Bits) return unit;
  const double aligned = std::ldexp(1.0, 1 - model.fraction_bits);
  return aligned + (model.fraction_bits < kFp32Bits ? std::ldexp(1.0, -model.fraction_bits) : unit);
}

}  // namespace

double accumulation_factor(const Accumulation& accumulation, std::int64_t k) {
  const std::int64_t run = std::max<std::int64_t>(accumulation.exact_run, 1);
  const bool promotes = accumulation.fraction_bits < kFp32Bits;
  const std::int64_t steps = ceil_div(promotes ? std::min(k, kPromotion) : k, run);
  const double promotions = promotes ? static_cast<double>(ceil_div(k, kPromotion)) : 0;
  return std::expm1(static_cast<double>(steps) * step_error(accumulation) + (promotions + kFinishRoundings) * kUnit);
}

OutputRounding output_rounding(Element element) {
  switch (element) {
    case Element::f16: return {0x1p-11, 0x1p-25, 65520.0};
    case Element::bf16: return {0x1p-8, 0x1p-134, 0x1.ffp127};
    default: return {0x1p-24, 0x1p-150, 0x1.ffffffp127};
  }
}

}  // namespace finescale
