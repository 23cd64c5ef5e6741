#include "check/checked_product.h"

#include <finescale/routing.h>

#include <algorithm>
#include <vector>

namespace finescale {
namespace {

constexpr std::int64_t kCachedElements = std::int64_t{1} << 20;  // 16 MiB of decoded elements

// Grouped rows by the token that they are summed into, ascending.
std::vector<std::vector<std::int64_t>> rows_of_tokens(const GroupedGemmProblem& problem) {
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(is_summed(problem.routing) ? problem.gemm.d.rows : 0));
  for (std::int64_t i = 0; i < grouped_rows(problem) && !rows.empty(); ++i) {
    if (grouped_row(problem, i).group >= 0) rows[static_cast<std::size_t>(problem.routing.gather[i])].push_back(i);
  }
  return rows;
}

}  // namespace

std::int64_t cached_rows(const GemmProblem& problem) {
  const std::int64_t least = 2 * std::max(problem.d.format.block_rows, problem.d.format.block_cols);
  return std::max(kCachedElements / std::max<std::int64_t>(problem.a.cols, 1), least);
}

Product plain_product(const GemmProblem& gemm, Evaluator& evaluator) {
  return {gemm,
          [&evaluator](std::int64_t batch, std::int64_t row, std::int64_t col) {
            return evaluator.output({batch, row, col, batch, row, batch}, row);
          },
          [](std::int64_t, std::int64_t row) { return row; }};
}

Product grouped_product(const GroupedGemmProblem& problem, Evaluator& evaluator) {
  const auto index = [](const GroupedRow& at, std::int64_t batch, std::int64_t row, std::int64_t col) {
    return OutputIndex{batch, row, col, at.a_batch, at.a_row, at.group};
  };
  const auto a_scale_row = [problem](const GroupedRow& at) { return scale_row_of(problem, problem.gemm.a, at.group, at.a_row); };
  const auto written = [problem](std::int64_t batch, std::int64_t row) { return grouped_row(problem, batch * problem.gemm.d.rows + row); };
  const auto routed = [=, &evaluator](std::int64_t batch, std::int64_t row, std::int64_t col) {
    const GroupedRow at = written(batch, row);
    return at.group < 0 ? ExactValue{} : evaluator.output(index(at, batch, row, col), a_scale_row(at));
  };
  const auto summed = [=, &evaluator, tokens = rows_of_tokens(problem)](std::int64_t batch, std::int64_t row, std::int64_t col) {
    ExactValue sum;
    for (const std::int64_t i : tokens[static_cast<std::size_t>(row)]) {
      const GroupedRow at = grouped_row(problem, i);
      add_weighted(sum, evaluator.activation(index(at, batch, row, col), a_scale_row(at)), weight_of(problem.routing, i));
    }
    return sum;
  };
  const auto scale_row = [=](std::int64_t batch, std::int64_t row) {
    if (problem.gemm.d.scale_layout != ScaleLayout::scale_128x4_per_group) return row;
    const std::int64_t group = written(batch, row).group;
    return group < 0 ? kNoScale : scale_row_of(problem, problem.gemm.d, group, row);
  };
  if (!is_summed(problem.routing)) return {problem.gemm, routed, scale_row};
  const double rows = static_cast<double>(grouped_rows(problem)) / static_cast<double>(std::max<std::int64_t>(problem.gemm.d.rows, 1));
  return {problem.gemm, summed, scale_row, std::max(rows, 1.0)};
}

}  // namespace finescale
