#include <finescale/repack.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

namespace finescale {

Result<Plan<RepackProblem>> plan(const RepackProblem& problem, const Device& device) {
  return plan_op(problem, device, "repack", problem.kernel);
}

Status run(const Plan<RepackProblem>& plan, const RepackProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status repack(const RepackProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const RepackProblem& problem, const Device& device) {
  return workspace_bound_op(problem, device, problem.from.rows);
}

std::vector<Explanation> explain(const RepackProblem& problem, const Device& device) {
  return explain_op(problem, device, "repack", problem.kernel);
}

}  // namespace finescale
