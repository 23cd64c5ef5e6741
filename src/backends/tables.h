// What a backend exports: its kernel rows, best first, one table an op.
#pragma once

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

#include <span>

namespace finescale {

struct BackendTables {
  std::span<const Kernel<QuantizeProblem>> quantize{};
  std::span<const Kernel<DequantizeProblem>> dequantize{};
  std::span<const Kernel<RepackProblem>> repack{};
  std::span<const Kernel<PrepareProblem>> prepare{};
  std::span<const Kernel<GemmProblem>> gemm{};
  std::span<const Kernel<GroupedGemmProblem>> grouped_gemm{};
};

}  // namespace finescale
