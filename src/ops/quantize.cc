#include <finescale/quantize.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

namespace finescale {

Result<Plan<QuantizeProblem>> plan(const QuantizeProblem& problem, const Device& device) {
  return plan_op(problem, device, "quantize", problem.kernel);
}

Status run(const Plan<QuantizeProblem>& plan, const QuantizeProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status quantize(const QuantizeProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const QuantizeProblem& problem, const Device& device) {
  return workspace_bound_op(problem, device, problem.from.rows);
}

std::vector<Explanation> explain(const QuantizeProblem& problem, const Device& device) {
  return explain_op(problem, device, "quantize", problem.kernel);
}

}  // namespace finescale
