// quantize on a CPU, profile finescale: passes over the input, each parallel over rows.
//
//   residual  of rms_norm, added once
//   globals   amax of every row, joined into the global scales (the largest magnitude is the same in any order)
//   blocks    amax, scale and codes of every block: a leaf where there is one, else block_quantizer.h
#pragma once

#include "backends/cpu/kernels/leaves.h"

#include <finescale/quantize.h>

namespace finescale::cpu {

Refusal quantize_supports(const QuantizeProblem& problem, const DeviceInfo& device);
// Of the rows with a leaf for nvfp4: that format's blocks, scales from amax alone, nearest even.
Refusal quantize_nvfp4_supports(const QuantizeProblem& problem, const DeviceInfo& device);
Status quantize_run(const Leaves& leaves, const QuantizeProblem& problem, const Execution& execution);

}  // namespace finescale::cpu
