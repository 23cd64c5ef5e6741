#include "backends/reference/kernels.h"

#include "backends/reference/conversions.h"
#include "backends/reference/gemm_reference.h"
#include "backends/reference/grouped_gemm_reference.h"

namespace finescale::reference {
namespace {

constexpr Kernel<QuantizeProblem> kQuantize[] = {
    {.name = "quantize_reference", .target = {}, .supports = quantize_supports, .run = quantize_run},
};
constexpr Kernel<DequantizeProblem> kDequantize[] = {
    {.name = "dequantize_reference", .target = {}, .supports = dequantize_supports, .run = dequantize_run},
};
constexpr Kernel<RepackProblem> kRepack[] = {
    {.name = "repack_reference", .target = {}, .supports = repack_supports, .run = repack_run},
};
constexpr Kernel<PrepareProblem> kPrepare[] = {
    {.name = "prepare_reference", .target = {}, .supports = prepare_supports, .run = prepare_run},
};
constexpr Kernel<GemmProblem> kGemm[] = {
    {.name = "gemm_reference", .target = {}, .adds = gemm_adds, .configure = gemm_configure, .run = gemm_run},
};
constexpr Kernel<GroupedGemmProblem> kGroupedGemm[] = {
    {.name = "grouped_gemm_reference",
     .target = {},
     .adds = grouped_gemm_adds,
     .configure = grouped_gemm_configure,
     .run = grouped_gemm_run},
};

}  // namespace

BackendTables tables() {
  return {.quantize = kQuantize,
          .dequantize = kDequantize,
          .repack = kRepack,
          .prepare = kPrepare,
          .gemm = kGemm,
          .grouped_gemm = kGroupedGemm};
}

}  // namespace finescale::reference
