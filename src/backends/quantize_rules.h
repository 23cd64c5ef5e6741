// What a quantize problem may ask for beyond its shape: which recipe goes with which format, and the values that a CPU reads
// before it writes anything.
#pragma once

#include <finescale/kernel.h>
#include <finescale/quantize.h>
#include <finescale/status.h>

#include <string_view>

namespace finescale {

// No rule where profile, scale search, rounding, format and input go together; for `supports` of rows that take every recipe.
Refusal recipe_refusal(const QuantizeProblem& problem);

// Given global scales of a matrix that is quantized, in host memory: finite, at least 2^-126, E S g finite.
Status check_given_globals(std::string_view name, const Matrix& matrix);

// Those, and the ends of row segments. check_pointers calls it on a CPU, before any row runs.
Status check_quantize_values(const QuantizeProblem& problem);

}  // namespace finescale
