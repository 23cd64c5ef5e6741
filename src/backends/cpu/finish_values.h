// The FP32 value of outputs before their rounding, a run of columns at a time: finish.h for whole rows.
#pragma once

#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/strip.h"

#include <finescale/gemm.h>

#include <cstdint>

namespace finescale::cpu {

inline constexpr std::int64_t kRunCols = 512;  // most columns of a run

// act(...) with (`residual`) or without beta C, of row strip.rows[i]; zeros where the row has no place in the sums.
void finish_run(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t i, std::int64_t first,
                std::int64_t count, bool residual, float* out);

}  // namespace finescale::cpu
