// Judges an op's output: a product by the exact oracle, a conversion by the bytes of the reference.
#pragma once

#include <finescale/check.h>
#include <finescale/dequantize.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

#include <cstdint>
#include <string>

namespace finescale::tools {

struct Verdict {
  bool ok = false;
  // Products: the largest error in units of the bound, 1.0 = at the bound. Conversions: codes and scales that differ.
  double worst = 0;
  std::int64_t batch = -1, row = -1, col = -1;  // where; -1: nowhere, or outside the rows and columns
  double observed = 0, exact = 0, bound = 0;    // there
  std::int64_t checked = 0, outputs = 0;
};

// `problem` lies in host memory; `observed` is what a kernel made of it, back in host memory.
Result<Verdict> judge(const GemmProblem& problem, const Matrix& observed, const Accumulation& accumulation, const CheckOptions& options);
Result<Verdict> judge(const GroupedGemmProblem& problem, const Matrix& observed, const Accumulation& accumulation,
                      const CheckOptions& options);
Result<Verdict> judge(const QuantizeProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&);
Result<Verdict> judge(const DequantizeProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&);
Result<Verdict> judge(const RepackProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&);

}  // namespace finescale::tools
