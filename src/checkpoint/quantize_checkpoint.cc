#include "checkpoint/quantize_checkpoint.h"

#include "checkpoint/host_operand.h"
#include "checkpoint/quantize_groups.h"
#include "checkpoint/tensor_scan.h"
#include "checkpoint/weight_error.h"

#include <finescale/formats/profiles.h>
#include <finescale/quantize.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace finescale::checkpoint {
namespace {

// Quantizes the weights of a plan one by one.
class WeightQuantizer {
 public:
  WeightQuantizer(const Checkpoint& checkpoint, const CheckpointPlan& plan, const QuantizeCheckpointOptions& options, const Device& device)
      : checkpoint_(checkpoint),
        options_(options),
        encoding_(options.encoding != nullptr ? *options.encoding : *encodings().front()),
        device_(device),
        groups_(plan, options.share_global) {}

  std::vector<WeightError> errors;

  Status write(const PlannedTensor& planned, OutputTensors& outputs) {
    HostBuffer unaligned;
    const auto plain = plain_matrix(*planned.source, unaligned);
    FINESCALE_TRY(plain);
    MutableMatrix quantized{.format = encoding_.format, .rows = plain->rows, .cols = plain->cols};
    const auto sizes = storage(quantized);
    FINESCALE_TRY(sizes);
    auto codes = HostBuffer::make(sizes->data), scales = HostBuffer::make(sizes->scales);
    FINESCALE_TRY(codes);
    FINESCALE_TRY(scales);
    quantized.data = codes->data();
    quantized.scales = scales->data();
    const auto amax = group_amax(planned);
    FINESCALE_TRY(amax);
    const Element from = element_of(planned.source->dtype);
    const bool shared = groups_.members(*planned.source).size() > 1;
    float global = shared ? profile_multiplier(from, *amax) : 1.0f;
    FINESCALE_TRY(quantize_weight(*plain, quantized, shared, global));
    if (options_.measure) {
      auto error = weight_error(*plain, quantized, device_);
      FINESCALE_TRY(error);
      error->tensor = planned.source->name;
      errors.push_back(*std::move(error));
    }
    const std::array<float, 1> stored{shared ? encoding_.stored_global(global) : stored_scalar(from, *amax, global)};
    FINESCALE_TRY(outputs.append(0, codes->bytes()));
    FINESCALE_TRY(outputs.append(1, scales->bytes()));
    return outputs.append(2, std::as_bytes(std::span(stored)));
  }

 private:
  // A profile without a global scale has 1, which encodings store.
  bool has_global() const { return options_.recipe.profile != Profile::flashrt; }

  Status quantize_weight(const Matrix& plain, MutableMatrix& quantized, bool global_given, float& global) {
    if (has_global()) {
      quantized.global_kind = GlobalScale::one;
      quantized.global = &global;
    }
    QuantizeProblem problem;
    problem.from = plain;
    problem.to = quantized;
    problem.recipe = options_.recipe;
    problem.global_given = global_given && has_global();
    return run_on_host(problem, device_);
  }

  // The decode multiplier that the profile takes for a matrix with this amax.
  float profile_multiplier(Element from, float amax) const {
    const Profile profile = options_.recipe.profile;
    if (!has_global()) return 1.0f;
    if (profile == Profile::finescale) return global_scale(encoding_.format, amax);
    return profile_decode_global(profile, profile_global(encoding_.format, profile, from, amax));
  }

  // What to store where the quantizer itself made `multiplier`. A divisor that the profile forms is stored in its own bits: to
  // invert it twice could move the last one.
  float stored_scalar(Element from, float amax, float multiplier) const {
    const Profile profile = options_.recipe.profile;
    if (profile == Profile::compressed_tensors && encoding_.divides) return profile_global(encoding_.format, profile, from, amax);
    return encoding_.stored_global(multiplier);
  }

  // The largest finite magnitude among the weights that share a global scale. invalid_argument: one of them is not finite.
  Result<float> group_amax(const PlannedTensor& planned) {
    const std::string key = groups_.key(*planned.source);
    if (const auto known = group_amax_.find(key); known != group_amax_.end()) return known->second;
    float amax = 0;
    for (const PlannedTensor* member : groups_.members(*planned.source)) {
      const Tensor& tensor = *member->source;
      const ElementFacts facts = scan_elements(tensor.dtype, tensor.bytes);
      if (facts.nonfinite != 0 && !options_.allow_nonfinite) {
        return invalid_argument(fmt::format("tensor \"{}\": {} elements are NaN or Inf, the first at [{}, {}]", tensor.name,
                                            facts.nonfinite, facts.first_nonfinite / tensor.shape[1],
                                            facts.first_nonfinite % tensor.shape[1]));
      }
      amax = std::max(amax, facts.amax);
      if (member != &planned) checkpoint_.release(tensor, tensor.bytes);
    }
    group_amax_[key] = amax;
    return amax;
  }

  const Checkpoint& checkpoint_;
  const QuantizeCheckpointOptions& options_;
  const Encoding& encoding_;
  const Device& device_;
  FusionGroups groups_;
  std::unordered_map<std::string, float> group_amax_;
};

}  // namespace

Result<QuantizeCheckpointReport> quantize_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out,
                                                     const QuantizeCheckpointOptions& options, const OutputOptions& output,
                                                     const Device& device) {
  FINESCALE_TRY(require_host(device));
  auto plan = plan_quantize_checkpoint(checkpoint, options);
  FINESCALE_TRY(plan);
  QuantizeCheckpointReport report{*std::move(plan), {}};
  WeightQuantizer quantizer(checkpoint, report.plan, options, device);
  const auto make = [&](const PlannedTensor& planned, OutputTensors& outputs) { return quantizer.write(planned, outputs); };
  FINESCALE_TRY(write_checkpoint(checkpoint, report.plan, out, output, make));
  report.errors = std::move(quantizer.errors);
  return report;
}

}  // namespace finescale::checkpoint
