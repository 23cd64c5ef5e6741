// The product of a strip: sums[n / 16][place][n % 16] = sum over k of A[place, k] * B[n, k], FP32. Two ways:
//
//   tiles   blocked: A is packed once into tiles of 6 rows; a task takes 8 panels of B for one segment of rows and, kDepth
//           columns at a time, decodes a panel into L1 and sweeps the segment's tiles over it.
//   gemv    for few rows: a task takes some panels and multiplies them straight from their prepared bytes, 4 rows at a time.
//
// Both are cut by shape; a sum is formed by one task, over k in one order, so bits depend on neither threads nor tasks.
#pragma once

#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/strip.h"

#include <finescale/device.h>
#include <finescale/gemm.h>

namespace finescale::cpu {

enum class Method { tiles, gemv };

void multiply_strip(const Leaves& leaves, Method method, const GemmProblem& problem, const Strip& strip, const Execution& execution);

}  // namespace finescale::cpu
