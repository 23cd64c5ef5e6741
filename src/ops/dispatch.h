// plan, run, workspace_bound and explain for any op: the same walk over the rows.
//
// An op's .cc gives four functions, found by overload:
//   Status validate(const Problem&)                 every rule on tags, shapes and strides, a sentence each
//   Problem with_strides(const Problem&)            the problem with every packed stride filled in
//   Status check_pointers(const Problem&)           null, aligned as promised, routing on a CPU
//   Problem fewer_rows(const Problem&, int64)       the problem with that many rows, for workspace_bound
#pragma once

#include "ops/registry.h"

#include <finescale/kernel.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finescale {

std::string refusal_sentence(std::string_view kernel, const Refusal& refusal);
// invalid_argument: no kernel of that name; lists the nearest names.
Status unknown_kernel(std::string_view name, const std::vector<std::string_view>& known);
Status check_workspace(const Choice& choice, const Workspace& workspace);

template <class Problem>
std::vector<std::string_view> kernel_names() {
  std::vector<std::string_view> names;
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) names.push_back(kernel.name);
  }
  return names;
}

template <class Problem>
Choice configure(const Kernel<Problem>& kernel, const Problem& problem, const DeviceInfo& device) {
  return kernel.configure != nullptr ? kernel.configure(problem, device) : Choice{};
}

// The kernel that the problem or the device forces; null where neither does. `op` is "gemm", "quantize", ...:
// a device's forced kernel counts for the op that its name begins with.
template <class Problem>
Result<const Kernel<Problem>*> forced_kernel(const Problem& problem, const Device& device, std::string_view op, const char* in_problem) {
  std::string_view name = in_problem != nullptr ? in_problem : device.forced_kernel();
  if (name.empty() || (in_problem == nullptr && !name.starts_with(op))) return nullptr;
  const Kernel<Problem>* kernel = find_kernel(kernel_tables<Problem>(), name);
  if (kernel == nullptr) return unknown_kernel(name, kernel_names<Problem>());
  if (const Refusal refusal = refuse(*kernel, problem, device.info())) return unsupported(refusal_sentence(name, refusal));
  return kernel;
}

template <class Problem>
Result<Plan<Problem>> plan_op(const Problem& given, const Device& device, std::string_view op, const char* forced) {
  FINESCALE_TRY(validate(given));
  const Problem problem = with_strides(given);
  const auto kernel = forced_kernel(problem, device, op, forced);
  FINESCALE_TRY(kernel);
  const Kernel<Problem>* chosen = *kernel != nullptr ? *kernel : choose(kernel_tables<Problem>(), problem, device.info());
  if (chosen == nullptr)
    return unsupported(fmt::format("{}: no kernel on device {} takes this problem; explain() lists each reason", op, device.name()));
  return Plan<Problem>{chosen, configure(*chosen, problem, device.info())};
}

// A plan runs its problem, or one that its kernel takes too with no more workspace: a kernel cuts its workspace by the problem.
template <class Problem>
Status check_plan(const Plan<Problem>& plan, const Problem& problem, const Device& device) {
  if (const Refusal refusal = refuse(*plan.kernel, problem, device.info())) {
    return invalid_argument("plan: made for another problem; " + refusal_sentence(plan.kernel->name, refusal));
  }
  const Choice needed = configure(*plan.kernel, problem, device.info());
  if (needed.scratch_bytes <= plan.choice.scratch_bytes && needed.sync_bytes <= plan.choice.sync_bytes) return {};
  return invalid_argument(fmt::format("plan: made for another problem; this one needs {} scratch and {} sync bytes, the plan has {} and {}",
                                      needed.scratch_bytes, needed.sync_bytes, plan.choice.scratch_bytes, plan.choice.sync_bytes));
}

template <class Problem>
Status run_op(const Plan<Problem>& plan, const Problem& given, const Execution& execution) {
  if (plan.kernel == nullptr) return invalid_argument("plan: empty; make it with plan()");
  if (execution.device == nullptr) return invalid_argument("execution.device is null: open one with Device::open");
  if (plan.kernel->target.kind != execution.device->info().kind) {
    return invalid_argument(fmt::format("execution.device = {}: the plan was made for another kind of device", execution.device->name()));
  }
  const Problem problem = with_strides(given);
  FINESCALE_TRY(check_plan(plan, problem, *execution.device));
  FINESCALE_TRY(check_pointers(problem, *execution.device));
  FINESCALE_TRY(check_workspace(plan.choice, execution.workspace));
  return plan.kernel->run(problem, plan.choice, execution);
}

template <class Problem>
Status call_op(const Problem& problem, const Execution& execution) {
  if (execution.device == nullptr) return invalid_argument("execution.device is null: open one with Device::open");
  const auto made = plan(problem, *execution.device);
  FINESCALE_TRY(made);
  return run(*made, problem, execution);
}

// Enough for every row of the table that takes the problem, at these rows and at each smaller count that configure() may treat apart.
template <class Problem>
Choice workspace_bound_op(const Problem& given, const Device& device, std::int64_t rows) {
  Choice bound;
  if (!validate(given)) return bound;
  std::vector<std::int64_t> counts{rows};
  for (std::int64_t smaller = 1; smaller < rows; smaller *= 2) counts.push_back(smaller);
  for (const std::int64_t count : counts) {
    const Problem problem = with_strides(fewer_rows(given, count));
    for (const auto& table : kernel_tables<Problem>()) {
      for (const auto& kernel : table) {
        if (refuse(kernel, problem, device.info())) continue;
        const Choice choice = configure(kernel, problem, device.info());
        bound.scratch_bytes = std::max(bound.scratch_bytes, choice.scratch_bytes);
        bound.sync_bytes = std::max(bound.sync_bytes, choice.sync_bytes);
      }
    }
  }
  return bound;
}

template <class Problem>
std::vector<Explanation> explain_op(const Problem& given, const Device& device, std::string_view op, const char* forced) {
  std::vector<Explanation> rows;
  if (const Status valid = validate(given); !valid) return {{op, false, false, valid.sentence}};
  const Problem problem = with_strides(given);
  const auto plan = plan_op(given, device, op, forced);
  const auto named = forced_kernel(problem, device, op, forced);
  const std::string_view taken = named && *named != nullptr ? "taken: forced by its name" : "taken: the first that supports and suits";
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) {
      Explanation row{kernel.name, true, plan && plan->kernel == &kernel, {}};
      if (const Refusal refusal = refuse(kernel, problem, device.info())) {
        row.accepted = false;
        row.sentence = refusal_sentence(kernel.name, refusal);
      } else if (const Refusal unfit = kernel.suits != nullptr ? kernel.suits(problem, device.info()) : Refusal{}) {
        row.sentence = "takes it, but " + refusal_sentence(kernel.name, unfit);
      } else {
        row.sentence = row.taken ? taken : "takes it; another row is taken";
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace finescale
