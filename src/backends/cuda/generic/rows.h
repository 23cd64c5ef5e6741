// The run functions of the generic rows; kernels.cc lists them. Each enqueues on the caller's stream and returns.
#pragma once

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

namespace finescale::cuda {

Status quantize_generic(const QuantizeProblem& problem, const Choice& choice, const Execution& execution);
Status dequantize_generic(const DequantizeProblem& problem, const Choice& choice, const Execution& execution);
Status repack_generic(const RepackProblem& problem, const Choice& choice, const Execution& execution);
Status prepare_generic(const PrepareProblem& problem, const Choice& choice, const Execution& execution);
Status gemm_generic(const GemmProblem& problem, const Choice& choice, const Execution& execution);
Status grouped_gemm_generic(const GroupedGemmProblem& problem, const Choice& choice, const Execution& execution);

// The scratch that each needs.
Choice configure_quantize_generic(const QuantizeProblem& problem, const DeviceInfo& device);
Choice configure_gemm_generic(const GemmProblem& problem, const DeviceInfo& device);
Choice configure_grouped_gemm_generic(const GroupedGemmProblem& problem, const DeviceInfo& device);

}  // namespace finescale::cuda
