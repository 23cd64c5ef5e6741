#include <finescale/gemm.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

namespace finescale {

Result<Plan<GemmProblem>> plan(const GemmProblem& problem, const Device& device) {
  return plan_op(problem, device, "gemm", problem.kernel);
}

Status run(const Plan<GemmProblem>& plan, const GemmProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status gemm(const GemmProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const GemmProblem& problem, const Device& device) { return workspace_bound_op(problem, device, problem.a.rows); }

std::vector<Explanation> explain(const GemmProblem& problem, const Device& device) {
  return explain_op(problem, device, "gemm", problem.kernel);
}

}  // namespace finescale
