// grouped_gemm: one product per group of rows (mixture of experts). B is groups x N x K; the routing lies in device
// memory and is never read on the host, so a captured graph may run with changing routing.
//
//   D[i] = epilogue(A[i] * B[group(i)]^T); rows of no group are written as zeros
#pragma once

#include <finescale/gemm.h>

#include <cstdint>

namespace finescale {

struct Routing {
  // row_groups: index[M], the group of each row in any order, -1 = none.
  // end_offsets: index[G], group g ends before row index[g]. offsets_from_zero: index[G + 1], starting with 0.
  // counts: index[G] over a padded A of G batches of max_m rows: the first index[g] rows of batch g are real.
  enum class Kind : std::uint8_t { row_groups, end_offsets, offsets_from_zero, counts };

  Kind kind = Kind::end_offsets;
  const std::int32_t* index = nullptr;
  std::int64_t index_length = 0;
  const std::int32_t* gather = nullptr;  // optional, M: grouped row i reads row gather[i] of A
  std::int64_t gather_length = 0;        // M where gather is used, else 0; A then has its own number of rows
  const float* weight = nullptr;         // optional, M: D[t] = out(sum over i with gather[i] = t, ascending, of weight[i] * act(...))
  std::int64_t summed_rows = 0;          // rows of D when weighted rows sum into tokens; 0: no sum
  std::int64_t expected_rows = 0;        // a hint for the choice, never for the result
};

// gemm.b.batch = groups; gemm.a and gemm.d have batch 1 (Kind::counts: batch = groups).
struct GroupedGemmProblem {
  GemmProblem gemm{};
  Routing routing{};
};

Result<Plan<GroupedGemmProblem>> plan(const GroupedGemmProblem& problem, const Device& device);
// On a CPU bad routing is invalid_argument with position and value, before anything is written. On a GPU a bad id makes
// its own row NaN, a bad offset or count makes every row NaN; never an access out of bounds.
Status run(const Plan<GroupedGemmProblem>& plan, const GroupedGemmProblem& problem, const Execution& execution);
Status grouped_gemm(const GroupedGemmProblem& problem, const Execution& execution);
Choice workspace_bound(const GroupedGemmProblem& problem, const Device& device);
std::vector<Explanation> explain(const GroupedGemmProblem& problem, const Device& device);

}  // namespace finescale
