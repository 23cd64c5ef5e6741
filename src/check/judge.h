// Judges stored outputs against exact values, in units of the bound (docs/numerics.md): at most 1 is right.
#pragma once

#include "check/exact_value.h"

#include <finescale/formats/format.h>
#include <finescale/formats/recipe.h>

#include <cstdint>
#include <limits>
#include <span>

namespace finescale {

inline constexpr double kWrong = std::numeric_limits<double>::infinity();

// |D - exact| <= bound for a plain D of that element.
double output_bound(const ExactValue& exact, Element element);
// |observed - exact| / output_bound; kWrong for a NaN, an Inf or a finite number where another of them is due.
double judge_plain(const ExactValue& exact, Element element, float observed);

// A block of D in a block format: the exact values, the stored codes in the same order, and the stored scale code.
struct ObservedBlock {
  std::span<const ExactValue> exact;
  std::span<const std::uint32_t> codes;
  std::uint32_t scale_code = 0;  // unused where the format has no block scales
  float global = 1.0f;
};
struct BlockVerdict {
  double worst = 0;         // 0, or 1 + how many codes the stored one is outside of those allowed
  std::int64_t where = -1;  // index of the element; the first where the scale is wrong
};
BlockVerdict judge_block(const Format& format, const Recipe& recipe, const ObservedBlock& observed);

}  // namespace finescale
