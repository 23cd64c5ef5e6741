// check: the exact oracle. Says how far a product is from the exact sum, in units of a derived bound (docs/numerics.md).
// Works on host memory and on anyone's product.
//
//   |D - exact| <= u_out |exact| + eta_out + (1 + u_out) E,  E = L (c S + t) + e_act + what bias, gate and residual round
//   S = |alpha gA gB| sum over k of |a sa b sb|
#pragma once

#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstdint>

namespace finescale {

// Which outputs are judged. Above max_products multiply-adds a seeded sample is taken: the corners, every row and column next
// to a border of tiles of 128, 64 and 16 as far as the number reaches, and random ones.
struct CheckOptions {
  std::int64_t max_products = std::int64_t{1} << 28;
  std::uint64_t seed = 0;
};

struct CheckReport {
  bool ok = false;
  // The largest error in units of the bound: at most 1 is right. Infinity for a NaN, an Inf or a finite value where another of
  // them is due. D in a block format: 0, or 1 + how many codes a scale or an element lies outside of those that the bound allows.
  double worst = 0;
  std::int64_t batch = -1, row = -1, col = -1;  // where; -1: every judged output is the exact value
  double observed = 0, exact = 0, bound = 0;    // there; D in a block format: bound is E
  double factor = 0;                            // c
  std::int64_t checked = 0, outputs = 0;        // outputs judged, and all of them
};

// One output before it is rounded. The effect of a changed code or scale in units of the bound is the difference of `low`
// between the changed and the given problem, divided by the bound of the given one.
struct ExactOutput {
  double low = 0, high = 0;  // enclose the exact value; both NaN or both Inf where it is that
  double rounded = 0;        // the exact value rounded once to D's element (a block format's D: to f32); NaN where low and high disagree
  double bound = 0;          // |D - exact| that a kernel with this accumulation may show; a block format's D: E
};

// Judges `observed` (batch x M x N, the format of problem.d; a block format's global is problem.d's) against the exact result
// of the problem, whose d.data and d.scales are not read. Every pointer is host memory. invalid_argument as from plan(), for bad
// routing, and for an observed matrix of another shape or format.
Result<CheckReport> check(const GemmProblem& problem, const Matrix& observed, const Accumulation& accumulation = {},
                          const CheckOptions& options = {});
Result<CheckReport> check(const GroupedGemmProblem& problem, const Matrix& observed, const Accumulation& accumulation = {},
                          const CheckOptions& options = {});
Result<ExactOutput> exact_output(const GemmProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col,
                                 const Accumulation& accumulation = {});
Result<ExactOutput> exact_output(const GroupedGemmProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col,
                                 const Accumulation& accumulation = {});

}  // namespace finescale
