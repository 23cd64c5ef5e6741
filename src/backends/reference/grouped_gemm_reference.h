// grouped_gemm in plain loops: the specification of every other row.
#pragma once

#include <finescale/grouped_gemm.h>

namespace finescale::reference {

Accumulation grouped_gemm_adds(const GroupedGemmProblem& problem);
Choice grouped_gemm_configure(const GroupedGemmProblem& problem, const DeviceInfo& device);
Status grouped_gemm_run(const GroupedGemmProblem& problem, const Choice& choice, const Execution& execution);

}  // namespace finescale::reference
