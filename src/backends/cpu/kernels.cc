#include "backends/cpu/kernels.h"

#include "backends/cpu/conversion_drivers.h"
#include "backends/cpu/gemm_driver.h"
#include "backends/cpu/grouped_gemm_driver.h"
#include "backends/cpu/quantize_driver.h"
#include "backends/summation_orders.h"

namespace finescale::cpu {
namespace {

constexpr Target kAvx2{.kind = DeviceKind::cpu, .isa = static_cast<std::uint64_t>(Isa::avx2)};
constexpr Target kAnyCpu{.kind = DeviceKind::cpu};

template <class Problem>
Accumulation ascending_fma(const Problem&) {
  return {.order = kOrderAscendingFma};
}
template <class Problem>
Accumulation ascending_products(const Problem&) {
  return {.order = kOrderAscendingProducts};
}
template <class Problem>
Accumulation unstated(const Problem&) {
  return {};
}

template <const Leaves& kLeaves, Method kMethod>
Status run_gemm(const GemmProblem& problem, const Choice&, const Execution& execution) {
  return gemm_run(kLeaves, kMethod, problem, execution);
}

constexpr Kernel<GemmProblem> kGemm[] = {
    {.name = "gemm_any_any_any_avx2_gemv",
     .target = kAvx2,
     .adds = unstated,
     .supports = gemv_supports,
     .suits = gemv_suits,
     .configure = gemm_configure,
     .run = run_gemm<avx2::kLeaves, Method::gemv>},
    {.name = "gemm_any_any_any_avx2",
     .target = kAvx2,
     .adds = ascending_fma,
     .configure = gemm_configure,
     .run = run_gemm<avx2::kLeaves, Method::tiles>},
    {.name = "gemm_any_any_any_portable",
     .target = kAnyCpu,
     .adds = ascending_products,
     .configure = gemm_configure,
     .run = run_gemm<portable::kLeaves, Method::tiles>},
};

template <const Leaves& kLeaves, Method kMethod>
Status run_grouped(const GroupedGemmProblem& problem, const Choice&, const Execution& execution) {
  return grouped_gemm_run(kLeaves, kMethod, problem, execution);
}

constexpr Kernel<GroupedGemmProblem> kGroupedGemm[] = {
    {.name = "grouped_gemm_any_any_any_avx2_gemv",
     .target = kAvx2,
     .adds = unstated,
     .supports = grouped_gemv_supports,
     .suits = grouped_gemv_suits,
     .configure = grouped_gemm_configure,
     .run = run_grouped<avx2::kLeaves, Method::gemv>},
    {.name = "grouped_gemm_any_any_any_avx2",
     .target = kAvx2,
     .adds = ascending_fma,
     .configure = grouped_gemm_configure,
     .run = run_grouped<avx2::kLeaves, Method::tiles>},
    {.name = "grouped_gemm_any_any_any_portable",
     .target = kAnyCpu,
     .adds = ascending_products,
     .configure = grouped_gemm_configure,
     .run = run_grouped<portable::kLeaves, Method::tiles>},
};

template <const Leaves& kLeaves>
Status run_quantize(const QuantizeProblem& problem, const Choice&, const Execution& execution) {
  return quantize_run(kLeaves, problem, execution);
}

template <const Leaves& kLeaves>
Status run_dequantize(const DequantizeProblem& problem, const Choice&, const Execution& execution) {
  return dequantize_run(kLeaves, problem, execution);
}

constexpr Kernel<QuantizeProblem> kQuantize[] = {
    {.name = "quantize_any_nvfp4_avx2", .target = kAvx2, .supports = quantize_nvfp4_supports, .run = run_quantize<avx2::kLeaves>},
    {.name = "quantize_any_any_portable", .target = kAnyCpu, .supports = quantize_supports, .run = run_quantize<portable::kLeaves>},
};

constexpr Kernel<DequantizeProblem> kDequantize[] = {
    {.name = "dequantize_any_any_avx2", .target = kAvx2, .supports = dequantize_supports, .run = run_dequantize<avx2::kLeaves>},
    {.name = "dequantize_any_any_portable", .target = kAnyCpu, .supports = dequantize_supports, .run = run_dequantize<portable::kLeaves>},
};

constexpr Kernel<RepackProblem> kRepack[] = {
    {.name = "repack_any_any_portable", .target = kAnyCpu, .supports = repack_supports, .run = repack_run},
};

constexpr Kernel<PrepareProblem> kPrepare[] = {
    {.name = "prepare_any_panel16_portable", .target = kAnyCpu, .supports = prepare_supports, .run = prepare_run},
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

}  // namespace finescale::cpu
