// dequantize, repack and prepare on a CPU: the reference's bytes, parallel over rows, whole runs at a time where layouts allow.
#pragma once

#include "backends/cpu/kernels/leaves.h"

#include <finescale/dequantize.h>
#include <finescale/prepare.h>
#include <finescale/repack.h>

namespace finescale::cpu {

Refusal dequantize_supports(const DequantizeProblem& problem, const DeviceInfo& device);
Status dequantize_run(const Leaves& leaves, const DequantizeProblem& problem, const Execution& execution);

Refusal repack_supports(const RepackProblem& problem, const DeviceInfo& device);
Status repack_run(const RepackProblem& problem, const Choice& choice, const Execution& execution);

// Into panel16.
Refusal prepare_supports(const PrepareProblem& problem, const DeviceInfo& device);
Status prepare_run(const PrepareProblem& problem, const Choice& choice, const Execution& execution);

}  // namespace finescale::cpu
