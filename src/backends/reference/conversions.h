// quantize, dequantize, repack and prepare in plain loops: the specification of every other row. Any format, layout,
// strides and shape.
#pragma once

#include <finescale/dequantize.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

namespace finescale::reference {

Refusal quantize_supports(const QuantizeProblem& problem, const DeviceInfo& device);
Status quantize_run(const QuantizeProblem& problem, const Choice& choice, const Execution& execution);

Refusal dequantize_supports(const DequantizeProblem& problem, const DeviceInfo& device);
Status dequantize_run(const DequantizeProblem& problem, const Choice& choice, const Execution& execution);

Refusal repack_supports(const RepackProblem& problem, const DeviceInfo& device);
Status repack_run(const RepackProblem& problem, const Choice& choice, const Execution& execution);

Refusal prepare_supports(const PrepareProblem& problem, const DeviceInfo& device);
Status prepare_run(const PrepareProblem& problem, const Choice& choice, const Execution& execution);

}  // namespace finescale::reference
