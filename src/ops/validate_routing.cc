#include "ops/validate_routing.h"

#include <finescale/routing.h>

#include <fmt/format.h>

#include <string>

namespace finescale {
namespace {

std::string entry_rule(const GroupedGemmProblem& problem, std::int64_t position) {
  const Routing& routing = problem.routing;
  switch (routing.kind) {
    case Routing::Kind::row_groups: return fmt::format("a group is -1 (none) or 0 to {}", groups_of(problem) - 1);
    case Routing::Kind::counts: return fmt::format("a count is 0 to max_m = {}", problem.gemm.a.rows);
    case Routing::Kind::end_offsets:
    case Routing::Kind::offsets_from_zero: break;
  }
  if (position == 0 && routing.kind == Routing::Kind::offsets_from_zero) return "the first offset is 0";
  const std::int32_t before = position == 0 ? 0 : routing.index[position - 1];
  return fmt::format("an offset is at least the one before, {}, and at most M = {}", before, grouped_rows(problem));
}

bool has_group(const GroupedGemmProblem& problem, std::int64_t row, std::int64_t routed_rows) {
  return problem.routing.kind == Routing::Kind::row_groups ? problem.routing.index[row] >= 0 : row < routed_rows;
}

}  // namespace

Status check_routing(const GroupedGemmProblem& problem) {
  const Routing& routing = problem.routing;
  for (std::int64_t position = 0; position < routing.index_length; ++position) {
    if (!is_bad_entry(problem, position)) continue;
    return invalid_argument(fmt::format("routing.index[{}] = {}: {}", position, routing.index[position], entry_rule(problem, position)));
  }
  // Offsets: rows before the last offset have a group, later ones none; a row of no group reads nothing.
  const std::int64_t routed = has_offsets(routing) && routing.index_length != 0 ? routing.index[routing.index_length - 1] : 0;
  for (std::int64_t row = 0; row < routing.gather_length; ++row) {
    if (!has_group(problem, row, routed) || !is_bad_gather(problem, row)) continue;
    return invalid_argument(
        fmt::format("routing.gather[{}] = {}: must name one of the {} rows of gemm.a", row, routing.gather[row], problem.gemm.a.rows));
  }
  return {};
}

}  // namespace finescale
