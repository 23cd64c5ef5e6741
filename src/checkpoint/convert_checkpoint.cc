#include "checkpoint/convert_checkpoint.h"

#include "checkpoint/nvfp4_tensors.h"
#include "checkpoint/output_configs.h"
#include "checkpoint/tensor_names.h"

#include <finescale/formats/bits.h>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace finescale::checkpoint {
namespace {

bool is_scalar_of(const QuantizedWeight& weight, const Tensor& tensor) { return &tensor == weight.global || &tensor == weight.input_scale; }

float converted_scalar(const Encoding& from, const Encoding& to, float stored) { return to.stored_global(from.multiplier(stored)); }

bool survives(const Encoding& from, const Encoding& to, float stored) {
  return float_bits(converted_scalar(to, from, converted_scalar(from, to, stored))) == float_bits(stored);
}

Status check_convertible(const Recognition& recognition, const Encoding& to) {
  if (!recognition.unread.empty() && !recognition.metadata.absent()) return recognition.unread.front().why;
  for (const QuantizedWeight& weight : recognition.weights) {
    if (!weight.modifiers.empty() && weight.encoding != &to) {
      return unsupported(fmt::format("tensor \"{}\": {} has no place for it", weight.modifiers.front()->name, to.name));
    }
    if (weight.tags.format != to.format) {
      return unsupported(fmt::format("tensor \"{}\": is {}, but {} holds {}", weight.codes->name, format_name(weight.tags.format), to.name,
                                     format_name(to.format)));
    }
  }
  return {};
}

// A tensor of a quantized weight, under its name in `to`.
Result<PlannedTensor> planned_part(const QuantizedWeight& weight, const Tensor& tensor, const Encoding& to) {
  if (weight.encoding == &to) return planned_copy(tensor, fmt::format("already {}", to.name));
  const auto tensors = to.tensors(weight.module, weight.tags.rows, weight.tags.cols);
  if (!tensors) return Status{tensors.status().code, fmt::format("tensor \"{}\": {}", weight.codes->name, tensors.status().sentence)};
  const TensorSpec& output = &tensor == weight.codes    ? tensors->codes
                             : &tensor == weight.scales ? tensors->scales
                             : &tensor == weight.global ? tensors->global
                                                        : tensors->input_scale;
  if (output.name == tensor.name && !is_scalar_of(weight, tensor)) return planned_copy(tensor, "the same in both encodings");
  return PlannedTensor{&tensor, Action::convert, fmt::format("{} in {}", output.name, to.name), {output}};
}

void note_reciprocals(const Recognition& recognition, const Encoding& to, CheckpointPlan& plan) {
  std::int64_t scalars = 0, changed = 0;
  for (const QuantizedWeight& weight : recognition.weights) {
    for (const Tensor* tensor : {weight.global, weight.input_scale}) {
      if (tensor == nullptr || weight.encoding == &to) continue;
      const float stored = read_scalar(*tensor);
      if (float_bits(converted_scalar(*weight.encoding, to, stored)) == float_bits(stored)) continue;
      ++scalars;
      if (!survives(*weight.encoding, to, stored)) ++changed;
    }
  }
  if (scalars == 0) return;
  plan.notes.push_back(fmt::format(
      "{} scalars become their FP32 reciprocals; of those, {} do not come back bit for bit when converted again", scalars, changed));
}

Result<CheckpointPlan> plan_recognized(const Checkpoint& checkpoint, const Recognition& recognition, const Encoding& to) {
  FINESCALE_TRY(check_convertible(recognition, to));
  CheckpointPlan plan;
  plan.notes = checkpoint.notes();
  plan.notes.insert(plan.notes.end(), recognition.notes.begin(), recognition.notes.end());
  if (recognition.weights.empty()) plan.notes.push_back("no weight in a known encoding was found: every tensor is copied");
  for (const UnreadTensor& unread : recognition.unread) plan.notes.push_back(unread.why.sentence + "; copied as it is");
  bool input_scales = false;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const QuantizedWeight* weight = recognition.weight_of(tensor);
    if (weight == nullptr) {
      plan.tensors.push_back(planned_copy(tensor, "not part of a quantized weight"));
      continue;
    }
    input_scales = input_scales || &tensor == weight->input_scale;
    auto planned = planned_part(*weight, tensor, to);
    FINESCALE_TRY(planned);
    plan.tensors.push_back(*std::move(planned));
  }
  note_reciprocals(recognition, to, plan);
  if (recognition.weights.empty()) return plan;
  if (!recognition.metadata.kv_cache.empty()) plan.notes.push_back("scales of the KV cache keep their names and values");
  const QuantizedModules modules{.activations = recognition.metadata.absent() ? input_scales : recognition.metadata.activations,
                                 .kv_cache = recognition.metadata.kv_cache,
                                 .excluded = plain_modules(plan)};
  FINESCALE_TRY(declare_quantized(checkpoint, to, modules, plan));
  return plan;
}

}  // namespace

Result<CheckpointPlan> plan_convert_checkpoint(const Checkpoint& checkpoint, const Encoding& to) {
  const auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  return plan_recognized(checkpoint, *recognition, to);
}

Result<CheckpointPlan> convert_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out, const Encoding& to,
                                          const OutputOptions& output) {
  const auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  auto plan = plan_recognized(checkpoint, *recognition, to);
  FINESCALE_TRY(plan);
  const auto make = [&](const PlannedTensor& planned, OutputTensors& outputs) -> Status {
    const QuantizedWeight& weight = *recognition->weight_of(*planned.source);
    if (!is_scalar_of(weight, *planned.source)) return outputs.append(0, planned.source->bytes);
    const std::array<float, 1> scalar{converted_scalar(*weight.encoding, to, read_scalar(*planned.source))};
    return outputs.append(0, std::as_bytes(std::span(scalar)));
  };
  FINESCALE_TRY(write_checkpoint(checkpoint, *plan, out, output, make));
  return plan;
}

}  // namespace finescale::checkpoint
