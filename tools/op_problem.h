// From the grammar to a problem: tags and shapes only, every pointer null. What plan() and explain() read.
#pragma once

#include "op_options.h"

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

namespace finescale::tools {

QuantizeProblem quantize_shape(const OpOptions& options);
DequantizeProblem dequantize_shape(const OpOptions& options);
RepackProblem repack_shape(const OpOptions& options);
GemmProblem gemm_shape(const OpOptions& options);
GroupedGemmProblem grouped_gemm_shape(const OpOptions& options);

// Calls visitor with the problem of the op.
template <class Visitor>
auto visit_shape(const OpOptions& options, Visitor&& visitor) {
  switch (options.op) {
    case Op::quantize: return visitor(quantize_shape(options));
    case Op::dequantize: return visitor(dequantize_shape(options));
    case Op::repack: return visitor(repack_shape(options));
    case Op::gemm:
    case Op::gemv: break;
    case Op::grouped_gemm: return visitor(grouped_gemm_shape(options));
  }
  return visitor(gemm_shape(options));
}

// The kernel that a problem forces.
template <class Problem>
const char*& forced_kernel(Problem& problem) {
  return problem.kernel;
}
inline const char*& forced_kernel(GroupedGemmProblem& problem) { return problem.gemm.kernel; }

// With --prepared, B gets the tags of the device's prepared layout; other problems stay as they are.
template <class Problem>
Status set_prepared_tags(const OpOptions&, const Device&, Problem&) {
  return {};
}
Status set_prepared_tags(const OpOptions& options, const Device& device, GemmProblem& problem);
Status set_prepared_tags(const OpOptions& options, const Device& device, GroupedGemmProblem& problem);

}  // namespace finescale::tools
