// gemm in plain loops: the specification of every other row.
#pragma once

#include <finescale/gemm.h>

namespace finescale::reference {

Accumulation gemm_adds(const GemmProblem& problem);
Choice gemm_configure(const GemmProblem& problem, const DeviceInfo& device);
Status gemm_run(const GemmProblem& problem, const Choice& choice, const Execution& execution);

}  // namespace finescale::reference
