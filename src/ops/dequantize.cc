#include <finescale/dequantize.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

namespace finescale {

Result<Plan<DequantizeProblem>> plan(const DequantizeProblem& problem, const Device& device) {
  return plan_op(problem, device, "dequantize", problem.kernel);
}

Status run(const Plan<DequantizeProblem>& plan, const DequantizeProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status dequantize(const DequantizeProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const DequantizeProblem& problem, const Device& device) {
  return workspace_bound_op(problem, device, problem.from.rows);
}

std::vector<Explanation> explain(const DequantizeProblem& problem, const Device& device) {
  return explain_op(problem, device, "dequantize", problem.kernel);
}

}  // namespace finescale
