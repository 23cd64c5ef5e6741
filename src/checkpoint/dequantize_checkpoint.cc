#include "checkpoint/dequantize_checkpoint.h"

#include "checkpoint/host_operand.h"
#include "checkpoint/output_configs.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/tensor_scan.h"

#include <finescale/dequantize.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace finescale::checkpoint {
namespace {

PlannedTensor planned_part(const QuantizedWeight& weight, const Tensor& tensor, Dtype dtype) {
  if (&tensor != weight.codes) return {&tensor, Action::drop, fmt::format("a scale of {}", weight.module), {}};
  const Shape shape{weight.tags.rows, weight.tags.cols};
  return {&tensor,
          Action::dequantize,
          fmt::format("{} {}", weight.encoding->name, format_name(weight.tags.format)),
          {{weight.module + std::string(kWeightSuffix), dtype, shape}}};
}

Status check_readable(const Recognition& recognition) {
  if (!recognition.unread.empty()) return recognition.unread.front().why;
  for (const QuantizedWeight& weight : recognition.weights) {
    if (weight.modifiers.empty()) continue;
    return unsupported(
        fmt::format("tensor \"{}\": changes what {} means, and is not applied", weight.modifiers.front()->name, weight.codes->name));
  }
  return {};
}

Result<CheckpointPlan> plan_recognized(const Checkpoint& checkpoint, const Recognition& recognition,
                                       const DequantizeCheckpointOptions& options) {
  if (!is_plain(options.dtype))
    return invalid_argument(fmt::format("dtype {}: dequantize writes F32, F16 or BF16", dtype_name(options.dtype)));
  FINESCALE_TRY(check_readable(recognition));
  CheckpointPlan plan;
  plan.notes = checkpoint.notes();
  plan.notes.insert(plan.notes.end(), recognition.notes.begin(), recognition.notes.end());
  if (recognition.weights.empty()) plan.notes.push_back("no quantized weight was found: every tensor is copied");
  for (const Tensor& tensor : checkpoint.tensors()) {
    const QuantizedWeight* weight = recognition.weight_of(tensor);
    plan.tensors.push_back(weight == nullptr ? planned_copy(tensor, "not quantized") : planned_part(*weight, tensor, options.dtype));
  }
  for (const QuantizedWeight& weight : recognition.weights) {
    if (weight.global_scale > 0 && std::isfinite(weight.global_scale)) continue;
    plan.notes.push_back(fmt::format("{}: its global scale is {}, decoded as it stands", weight.module, weight.global_scale));
  }
  FINESCALE_TRY(declare_plain(checkpoint, plan));
  return plan;
}

}  // namespace

Result<CheckpointPlan> plan_dequantize_checkpoint(const Checkpoint& checkpoint, const DequantizeCheckpointOptions& options) {
  const auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  return plan_recognized(checkpoint, *recognition, options);
}

Result<CheckpointPlan> dequantize_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out,
                                             const DequantizeCheckpointOptions& options, const OutputOptions& output,
                                             const Device& device) {
  FINESCALE_TRY(require_host(device));
  const auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  auto plan = plan_recognized(checkpoint, *recognition, options);
  FINESCALE_TRY(plan);
  std::vector<std::string> overflows;
  const auto make = [&](const PlannedTensor& planned, OutputTensors& outputs) -> Status {
    const QuantizedWeight& weight = *recognition->weight_of(*planned.source);
    const auto size = tensor_bytes(planned.outputs[0]);
    FINESCALE_TRY(size);
    auto plain = HostBuffer::make(*size);
    FINESCALE_TRY(plain);
    DequantizeProblem problem;
    problem.from = weight.matrix();
    problem.to = {.format = Format{element_of(options.dtype)}, .rows = weight.tags.rows, .cols = weight.tags.cols, .data = plain->data()};
    FINESCALE_TRY(run_on_host(problem, device));
    if (const auto facts = scan_elements(options.dtype, plain->bytes()); facts.nonfinite != 0) {
      overflows.push_back(
          fmt::format("{}: {} elements are NaN or Inf in {}", planned.outputs[0].name, facts.nonfinite, dtype_name(options.dtype)));
    }
    return outputs.append(0, plain->bytes());
  };
  FINESCALE_TRY(write_checkpoint(checkpoint, *plan, out, output, make));
  plan->notes.insert(plan->notes.end(), overflows.begin(), overflows.end());
  return plan;
}

}  // namespace finescale::checkpoint
