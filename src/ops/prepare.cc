#include <finescale/access.h>
#include <finescale/prepare.h>

#include "ops/dispatch.h"
#include "ops/validate.h"

#include <fmt/format.h>

#include <string>

namespace finescale {
namespace {

// The layout that a device's kernels read fastest. A GPU has none of its own: its generic kernels read each through its map.
CodeLayout preferred_layout(DeviceKind) { return static_cast<CodeLayout>(Panel16::kId); }

std::string prepared_names() {
  std::string names;
  PreparedLayouts::for_each([&](auto layout) { names += (names.empty() ? "" : ", ") + std::string(layout.kName); });
  return names;
}

Result<CodeLayout> prepared_layout(const Device& device, std::string_view name) {
  CodeLayout id = name.empty() ? preferred_layout(device.info().kind) : CodeLayout::row_major;
  PreparedLayouts::for_each([&](auto layout) {
    if (layout.kName == name) id = static_cast<CodeLayout>(layout.kId);
  });
  if (is_prepared(id)) return id;
  return invalid_argument(fmt::format("layout = \"{}\": no prepared layout has that name; there are {}", name, prepared_names()));
}

}  // namespace

Result<MutableMatrix> prepared_like(const Matrix& from, const Device& device, std::string_view layout) {
  FINESCALE_TRY(validate_matrix("from", from));
  const auto id = prepared_layout(device, layout);
  FINESCALE_TRY(id);
  bool takes = false;
  PreparedLayouts::visit(*id, [&](auto prepared) { takes = prepared.supports(from.format); });
  if (!takes) return unsupported(fmt::format("from.format = {}: layout {} does not take it", format_name(from.format), layout_name(*id)));
  MutableMatrix to{.format = from.format, .batch = from.batch, .rows = from.rows, .cols = from.cols};
  to.batch_stride = is_broadcast(from) ? 0 : kPacked;
  to.codes = *id;
  to.global_kind = from.global_kind;
  to.alignment = from.alignment;
  to.global = const_cast<float*>(from.global);  // read only: no op writes the global scales of a prepared matrix
  return to;
}

Result<Plan<PrepareProblem>> plan(const PrepareProblem& problem, const Device& device) {
  return plan_op(problem, device, "prepare", problem.kernel);
}

Status run(const Plan<PrepareProblem>& plan, const PrepareProblem& problem, const Execution& execution) {
  return run_op(plan, problem, execution);
}

Status prepare(const PrepareProblem& problem, const Execution& execution) { return call_op(problem, execution); }

Choice workspace_bound(const PrepareProblem& problem, const Device& device) {
  return workspace_bound_op(problem, device, problem.from.rows);
}

std::vector<Explanation> explain(const PrepareProblem& problem, const Device& device) {
  return explain_op(problem, device, "prepare", problem.kernel);
}

}  // namespace finescale
