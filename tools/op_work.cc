#include "op_work.h"

#include <finescale/routing.h>

#include <vector>

namespace finescale::tools {
namespace {

double bytes_of(const Matrix& matrix) {
  if (matrix.absent()) return 0;
  const auto bytes = storage(matrix);
  return bytes ? static_cast<double>(bytes->data + bytes->scales) : 0;
}

// 2 multiply-adds of N columns by K, for one row of A.
double flops_of_row(const GemmProblem& problem) {
  const double halves = problem.epilogue.gate == Gate::none ? 1 : 2;
  return 2 * halves * static_cast<double>(problem.d.cols) * static_cast<double>(problem.a.cols);
}

double epilogue_bytes(const GemmProblem& problem) {
  return bytes_of(problem.d) + bytes_of(problem.epilogue.bias) + bytes_of(problem.epilogue.residual);
}

double part(std::int64_t some, std::int64_t all) { return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all); }

}  // namespace

Work work_of(const QuantizeProblem& problem) { return {bytes_of(problem.from) + bytes_of(problem.to), 0}; }
Work work_of(const DequantizeProblem& problem) { return {bytes_of(problem.from) + bytes_of(problem.to), 0}; }
Work work_of(const RepackProblem& problem) { return {bytes_of(problem.from) + bytes_of(problem.to), 0}; }

Work work_of(const GemmProblem& problem) {
  return {bytes_of(problem.a) + bytes_of(problem.b) + bytes_of(problem.b2) + epilogue_bytes(problem),
          flops_of_row(problem) * static_cast<double>(problem.d.rows) * static_cast<double>(problem.d.batch)};
}

Work work_of(const GroupedGemmProblem& problem) {
  std::int64_t real_rows = 0, used_groups = 0;
  std::vector<bool> used(static_cast<std::size_t>(groups_of(problem)));
  for (std::int64_t row = 0; row < grouped_rows(problem); ++row) {
    const std::int64_t group = group_of(problem, row);
    if (group < 0) continue;
    ++real_rows;
    if (!used[static_cast<std::size_t>(group)]) ++used_groups;
    used[static_cast<std::size_t>(group)] = true;
  }
  const double weights = part(used_groups, groups_of(problem)) * (bytes_of(problem.gemm.b) + bytes_of(problem.gemm.b2));
  const double rows = part(real_rows, grouped_rows(problem)) * bytes_of(problem.gemm.a);
  return {rows + weights + epilogue_bytes(problem.gemm), flops_of_row(problem.gemm) * static_cast<double>(real_rows)};
}

}  // namespace finescale::tools
