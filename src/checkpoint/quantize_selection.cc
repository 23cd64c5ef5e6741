// Which tensors quantize_checkpoint takes, and why not the others.
#include "checkpoint/output_configs.h"
#include "checkpoint/quantize_checkpoint.h"
#include "checkpoint/quantize_groups.h"
#include "checkpoint/tensor_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace finescale::checkpoint {
namespace {

// The first pattern that names the tensor or its module; null: none.
const std::string* matching(const std::vector<std::string>& patterns, const Tensor& tensor) {
  const auto module = module_of(tensor.name);
  const auto found = std::ranges::find_if(
      patterns, [&](const std::string& pattern) { return glob_match(pattern, tensor.name) || (module && glob_match(pattern, *module)); });
  return found == patterns.end() ? nullptr : &*found;
}

// Why a tensor cannot be quantized whatever the patterns say; empty: it can.
std::string unfit(const Tensor& tensor) {
  if (!module_of(tensor.name)) return "not named *.weight";
  if (!is_plain(tensor.dtype)) return fmt::format("dtype {}", dtype_name(tensor.dtype));
  if (tensor.shape.size() != 2) return fmt::format("rank {}", tensor.shape.size());
  if (tensor.bytes.empty()) return "empty";
  return {};
}

struct Verdict {
  bool selected = false;
  std::string reason;
};

Verdict judge(const Tensor& tensor, const QuantizeCheckpointOptions& options) {
  if (std::string reason = unfit(tensor); !reason.empty()) return {false, std::move(reason)};
  if (const std::string* pattern = matching(options.include, tensor)) return {true, fmt::format("included by {}", *pattern)};
  if (const std::string* pattern = matching(options.exclude, tensor)) return {false, fmt::format("excluded by {}", *pattern)};
  if (const std::string_view part = not_linear_part(tensor.name); !part.empty())
    return {false, fmt::format("its name has the part {}", part)};
  return {true, "linear weight"};
}

PlannedTensor planned_quantize(const Tensor& tensor, std::string reason, const Encoding& encoding) {
  const std::string_view module = *module_of(tensor.name);
  auto tensors = encoding.tensors(module, tensor.shape[0], tensor.shape[1]);
  if (!tensors) return planned_copy(tensor, fmt::format("{}, but {}", reason, tensors.status().sentence));
  if (tensor.shape[1] % encoding.format.block_cols != 0) {
    reason += fmt::format("; K = {} ends in a partial block, which some loaders refuse", tensor.shape[1]);
  }
  return {
      &tensor, Action::quantize, std::move(reason), {std::move(tensors->codes), std::move(tensors->scales), std::move(tensors->global)}};
}

void note_unused_patterns(const Checkpoint& checkpoint, const std::vector<std::string>& patterns, CheckpointPlan& plan) {
  for (const std::string& pattern : patterns) {
    const bool used =
        std::ranges::any_of(checkpoint.tensors(), [&](const Tensor& tensor) { return matching({pattern}, tensor) != nullptr; });
    if (!used) plan.notes.push_back(fmt::format("the pattern {} names no tensor", pattern));
  }
}

// Engines that fuse siblings need all of them quantized, or none.
void describe_groups(CheckpointPlan& plan, bool share_global) {
  const FusionGroups groups(plan, true);
  for (PlannedTensor& planned : plan.tensors) {
    const auto module = module_of(planned.source->name);
    if (!module || !is_plain(planned.source->dtype)) continue;
    std::vector<std::string_view> others;
    for (const PlannedTensor* member : groups.members(*planned.source)) {
      if (member->source != planned.source) others.push_back(last_part(*module_of(member->source->name)));
    }
    if (others.empty()) continue;
    if (planned.action == Action::quantize && share_global) {
      planned.reason += fmt::format("; global scale shared with {}", fmt::join(others, ", "));
    } else if (planned.action == Action::copy && planned.source->shape.size() == 2) {
      plan.notes.push_back(fmt::format("{}: stays plain while {} is quantized; engines that fuse them refuse that", planned.source->name,
                                       fmt::join(others, ", ")));
    }
  }
}

}  // namespace

FusionGroups::FusionGroups(const CheckpointPlan& plan, bool shared) : shared_(shared) {
  for (const PlannedTensor& planned : plan.tensors) {
    if (planned.action == Action::quantize) groups_[key(*planned.source)].push_back(&planned);
  }
}

std::string FusionGroups::key(const Tensor& tensor) const {
  const auto module = module_of(tensor.name);
  return shared_ && module ? fusion_key(*module) : tensor.name;
}

const std::vector<const PlannedTensor*>& FusionGroups::members(const Tensor& tensor) const {
  static const std::vector<const PlannedTensor*> kNone;
  const auto found = groups_.find(key(tensor));
  return found == groups_.end() ? kNone : found->second;
}

Result<CheckpointPlan> plan_quantize_checkpoint(const Checkpoint& checkpoint, const QuantizeCheckpointOptions& options) {
  const Encoding& encoding = options.encoding != nullptr ? *options.encoding : *encodings().front();
  const auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  if (!recognition->metadata.absent()) {
    return invalid_argument(fmt::format("{}: is quantized already; {} says that the method is \"{}\"", checkpoint.path().string(),
                                        recognition->metadata.source, recognition->metadata.method));
  }
  if (!recognition->weights.empty()) {
    return invalid_argument(fmt::format("tensor \"{}\": is quantized already, as {}", recognition->weights.front().codes->name,
                                        recognition->weights.front().encoding->name));
  }
  CheckpointPlan plan;
  plan.notes = checkpoint.notes();
  for (const UnreadTensor& unread : recognition->unread) plan.notes.push_back(unread.why.sentence + "; copied as it is");
  note_unused_patterns(checkpoint, options.include, plan);
  note_unused_patterns(checkpoint, options.exclude, plan);
  for (const Tensor& tensor : checkpoint.tensors()) {
    Verdict verdict = judge(tensor, options);
    plan.tensors.push_back(verdict.selected ? planned_quantize(tensor, std::move(verdict.reason), encoding)
                                            : planned_copy(tensor, std::move(verdict.reason)));
  }
  describe_groups(plan, options.share_global);
  if (plan.count(Action::quantize) == 0) {
    plan.notes.push_back("no tensor is selected: every tensor is copied");
    return plan;
  }
  if (encoding.divides && options.recipe.profile != Profile::compressed_tensors) {
    plan.notes.push_back(fmt::format("{} stores 1/g in FP32; whoever inverts it again may get g changed in its last bit", encoding.name));
  }
  QuantizedModules modules;
  modules.excluded = plain_modules(plan);
  FINESCALE_TRY(declare_quantized(checkpoint, encoding, modules, plan));
  return plan;
}

}  // namespace finescale::checkpoint
