// The last step of a product: from the sums of a strip to D, in the order of finish.h, rows and columns in parallel.
//
//   D = out(act(alpha gA gB acc + bias) + beta C)      D in a block format: quantized from the unrounded FP32 values
#pragma once

#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/strip.h"

#include <finescale/device.h>
#include <finescale/gemm.h>

#include <cstdint>

namespace finescale::cpu {

// Writes the rows of D that the strip lists; rows without a place in the sums become zeros.
void finish_strip(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, const Execution& execution);

// What a grouped product sums over its rows: act(...) of row strip.rows[i], columns first .. first + count - 1.
void activated_values(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t i, std::int64_t first,
                      std::int64_t count, float* out);

// D from FP32 values that are complete: values[t][n], `cols` apart.
void store_values(const GemmProblem& problem, const float* values, const Execution& execution);

}  // namespace finescale::cpu
