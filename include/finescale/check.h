// check: the exact oracle. Says how far a product is from the exact sum, in units of a derived bound (docs/numerics.md).
// Works on host memory and on anyone's product.
#pragma once

#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstdint>

namespace finescale {

// Which outputs are judged. Above max_products multiply-adds a seeded sample is taken, with all tile edges.
struct CheckOptions {
  std::int64_t max_products = std::int64_t{1} << 28;
  std::uint64_t seed = 0;
};

struct CheckReport {
  bool ok = false;
  double worst = 0;                          // largest error in units of the bound: 1.0 = at the bound; infinity for a wrong NaN or Inf
  std::int64_t batch = -1, row = -1, col = -1;  // where
  double observed = 0, exact = 0, bound = 0;  // there
  std::int64_t checked = 0, outputs = 0;     // outputs judged, and all of them
};

// Exact value and bound of one output of a plain product.
struct ExactOutput {
  double low = 0, high = 0;   // encloses the exact result before the last rounding
  double bound = 0;           // |D - exact| a kernel with that accumulation may show
};

// Judges `observed` (batch x M x N, the format of problem.d) against the exact result of problem, whose d.data is not read.
// Every pointer of the problem is host memory. invalid_argument as from plan().
Result<CheckReport> check(const GemmProblem& problem, const Matrix& observed, const Accumulation& accumulation = {}, const CheckOptions& options = {});
Result<CheckReport> check(const GroupedGemmProblem& problem, const Matrix& observed, const Accumulation& accumulation = {},
                          const CheckOptions& options = {});
Result<ExactOutput> exact_output(const GemmProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col,
                                 const Accumulation& accumulation = {});

}  // namespace finescale
