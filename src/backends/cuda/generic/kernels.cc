#include "backends/cuda/generic/kernels.h"

#include "backends/cuda/generic/rows.h"
#include "backends/quantize_rules.h"
#include "backends/summation_orders.h"

namespace finescale::cuda {
namespace {

constexpr Target kAnyGpu{.kind = DeviceKind::cuda};

Refusal needs_routing(ScaleLayout from, ScaleLayout to = ScaleLayout::linear) {
  if (from != ScaleLayout::scale_128x4_per_group && to != ScaleLayout::scale_128x4_per_group) return {};
  return {"scale_128x4_per_group needs a routing, which this op has none of"};
}

// A thread writes whole bytes of a block: 4-bit codes of two blocks must not share one.
Refusal quantize_supports(const QuantizeProblem& problem, const DeviceInfo&) {
  const Format& format = problem.to.format;
  if (const Refusal refusal = needs_routing(problem.to.scale_layout)) return refusal;
  if (bits(format.element) == 4 && format.has_scales() && format.block_cols % 2 != 0) {
    return {"columns of a block of 4-bit codes", format.block_cols, format.block_cols + 1};
  }
  return recipe_refusal(problem);
}

Refusal dequantize_supports(const DequantizeProblem& problem, const DeviceInfo&) { return needs_routing(problem.from.scale_layout); }
Refusal repack_supports(const RepackProblem& problem, const DeviceInfo&) {
  return needs_routing(problem.from.scale_layout, problem.to.scale_layout);
}
Refusal prepare_supports(const PrepareProblem& problem, const DeviceInfo&) { return needs_routing(problem.from.scale_layout); }

Accumulation gemm_adds(const GemmProblem&) { return {.order = kOrderAscendingFma}; }
Accumulation grouped_gemm_adds(const GroupedGemmProblem&) { return {.order = kOrderAscendingFma}; }

constexpr Kernel<QuantizeProblem> kQuantize[] = {
    {.name = "quantize_any_any_generic",
     .target = kAnyGpu,
     .supports = quantize_supports,
     .configure = configure_quantize_generic,
     .run = quantize_generic},
};
constexpr Kernel<DequantizeProblem> kDequantize[] = {
    {.name = "dequantize_any_any_generic", .target = kAnyGpu, .supports = dequantize_supports, .run = dequantize_generic},
};
constexpr Kernel<RepackProblem> kRepack[] = {
    {.name = "repack_any_any_generic", .target = kAnyGpu, .supports = repack_supports, .run = repack_generic},
};
constexpr Kernel<PrepareProblem> kPrepare[] = {
    {.name = "prepare_any_any_generic", .target = kAnyGpu, .supports = prepare_supports, .run = prepare_generic},
};
constexpr Kernel<GemmProblem> kGemm[] = {
    {.name = "gemm_any_any_any_generic", .target = kAnyGpu, .adds = gemm_adds, .configure = configure_gemm_generic, .run = gemm_generic},
};
constexpr Kernel<GroupedGemmProblem> kGroupedGemm[] = {
    {.name = "grouped_gemm_any_any_any_generic",
     .target = kAnyGpu,
     .adds = grouped_gemm_adds,
     .configure = configure_grouped_gemm_generic,
     .run = grouped_gemm_generic},
};

}  // namespace

BackendTables generic_tables() {
  return {.quantize = kQuantize,
          .dequantize = kDequantize,
          .repack = kRepack,
          .prepare = kPrepare,
          .gemm = kGemm,
          .grouped_gemm = kGroupedGemm};
}

}  // namespace finescale::cuda
