#include "backends/reference/kernels.h"

#include "backends/reference/gemm.h"
#include "backends/reference/grouped_gemm.h"

namespace finescale::reference {
namespace {

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

BackendTables tables() { return {.gemm = kGemm, .grouped_gemm = kGroupedGemm}; }

}  // namespace finescale::reference
