// grouped_gemm on a CPU: strips of grouped rows, sorted by group inside a strip, multiplied and finished as gemm's are; with a
// weighted sum, added to FP32 totals of D in the order of the grouped rows.
#pragma once

#include "backends/cpu/product.h"

#include <finescale/grouped_gemm.h>

namespace finescale::cpu {

Choice grouped_gemm_configure(const GroupedGemmProblem& problem, const DeviceInfo& device);
Status grouped_gemm_run(const Leaves& leaves, Method method, const GroupedGemmProblem& problem, const Execution& execution);

// Of the gemv rows: as gemm's; good where the groups are small.
Refusal grouped_gemv_supports(const GroupedGemmProblem& problem, const DeviceInfo& device);
Refusal grouped_gemv_suits(const GroupedGemmProblem& problem, const DeviceInfo& device);

}  // namespace finescale::cpu
