#include "ops/registry.h"

#include "backends/cpu/kernels.h"
#include "backends/cuda/generic/kernels.h"
#include "backends/reference/kernels.h"
#include "backends/tables.h"
#include "finescale_built.h"

#include <vector>

namespace finescale {
namespace {

// The written order. A new backend is one line here.
std::vector<BackendTables> backends() {
  std::vector<BackendTables> list;
  if constexpr (built::kCuda) list.push_back(cuda::generic_tables());
  list.push_back(cpu::tables());
  list.push_back(reference::tables());
  return list;
}

template <class Problem>
KernelTables<Problem> join(std::span<const Kernel<Problem>> BackendTables::*op) {
  static const auto joined = [op] {
    std::vector<std::span<const Kernel<Problem>>> tables;
    for (const BackendTables& backend : backends()) tables.push_back(backend.*op);
    return tables;
  }();
  return joined;
}

}  // namespace

template <>
KernelTables<QuantizeProblem> kernel_tables() {
  return join(&BackendTables::quantize);
}
template <>
KernelTables<DequantizeProblem> kernel_tables() {
  return join(&BackendTables::dequantize);
}
template <>
KernelTables<RepackProblem> kernel_tables() {
  return join(&BackendTables::repack);
}
template <>
KernelTables<PrepareProblem> kernel_tables() {
  return join(&BackendTables::prepare);
}
template <>
KernelTables<GemmProblem> kernel_tables() {
  return join(&BackendTables::gemm);
}
template <>
KernelTables<GroupedGemmProblem> kernel_tables() {
  return join(&BackendTables::grouped_gemm);
}

}  // namespace finescale
