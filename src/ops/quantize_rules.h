// What a quantize problem may ask for beyond its shape: which recipe goes with which format, and the values that a CPU reads
// before it writes anything.
#pragma once

#include <finescale/kernel.h>
#include <finescale/quantize.h>
#include <finescale/status.h>

namespace finescale {

// No rule where profile, scale search, rounding, format and input go together; for `supports` of rows that take every recipe.
Refusal recipe_refusal(const QuantizeProblem& problem);

// Given global scales (finite, at least 2^-126, E S g finite) and the ends of row segments, in host memory.
Status check_quantize_values(const QuantizeProblem& problem);

}  // namespace finescale
