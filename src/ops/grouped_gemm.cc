#include <finescale/grouped_gemm.h>

#include <finescale/routing.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

namespace finescale {

Result<Plan<GroupedGemmProblem>> plan(const GroupedGemmProblem& problem, const Device& device) {
  return plan_op(problem, device, "grouped_gemm", problem.gemm.kernel);
}

Status run(const Plan<GroupedGemmProblem>& plan, const GroupedGemmProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status grouped_gemm(const GroupedGemmProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const GroupedGemmProblem& problem, const Device& device) {
  const bool counts = problem.routing.kind == Routing::Kind::counts;
  return workspace_bound_op(problem, device, counts ? problem.gemm.a.rows : grouped_rows(problem));
}

std::vector<Explanation> explain(const GroupedGemmProblem& problem, const Device& device) {
  return explain_op(problem, device, "grouped_gemm", problem.gemm.kernel);
}

}  // namespace finescale
