// How much an op must at least move and compute: the numbers behind GB/s, GFLOP/s and the roofline.
#pragma once

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

namespace finescale::tools {

struct Work {
  double bytes = 0;  // every operand once: codes and scales read, D written
  double flops = 0;  // 2 M N K for a product (gated: twice that); 0 for a conversion
};

// Routing, where there is one, lies in host memory: rows of no group and groups without rows cost nothing.
Work work_of(const QuantizeProblem& problem);
Work work_of(const DequantizeProblem& problem);
Work work_of(const RepackProblem& problem);
Work work_of(const GemmProblem& problem);
Work work_of(const GroupedGemmProblem& problem);

}  // namespace finescale::tools
