// gemm on a CPU: strips of rows of all batches, each multiplied (product.h) and finished (finish_rows.h).
#pragma once

#include "backends/cpu/product.h"

#include <finescale/gemm.h>

namespace finescale::cpu {

Choice gemm_configure(const GemmProblem& problem, const DeviceInfo& device);
Status gemm_run(const Leaves& leaves, Method method, const GemmProblem& problem, const Execution& execution);

// Of the gemv rows: B, and b2, in a prepared layout that gemv_panel reads; no promise about the order of sums.
Refusal gemv_supports(const GemmProblem& problem, const DeviceInfo& device);
Refusal gemv_suits(const GemmProblem& problem, const DeviceInfo& device);

}  // namespace finescale::cpu
