#include "checkpoint/quantize_checkpoint.h"

#include "checkpoint/host_operand.h"
#include "checkpoint/quantize_groups.h"
#include "checkpoint/tensor_scan.h"
#include "checkpoint/weight_error.h"

#include <finescale/quantize.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace finescale::checkpoint {
namespace {

std::span<const std::byte> bytes_of(const std::array<float, 1>& scalar) { return std::as_bytes(std::span(scalar)); }

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
    const Matrix plain = plain_matrix(*planned.source, unaligned);
    MutableMatrix quantized{.format = encoding_.format, .rows = plain.rows, .cols = plain.cols, .data = nullptr};
    const auto sizes = storage(quantized);
    FINESCALE_TRY(sizes);
    HostBuffer codes(sizes->data), scales(sizes->scales);
    quantized.data = codes.data();
    quantized.scales = scales.data();
    std::array<float, 1> global{1.0f};
    FINESCALE_TRY(quantize_weight(planned, plain, quantized, global[0]));
    if (options_.measure) {
      auto error = weight_error(plain, quantized, device_);
      FINESCALE_TRY(error);
      error->tensor = planned.source->name;
      errors.push_back(*std::move(error));
    }
    const std::array<float, 1> stored{encoding_.stored_global(global[0])};
    FINESCALE_TRY(outputs.append(0, codes.bytes()));
    FINESCALE_TRY(outputs.append(1, scales.bytes()));
    return outputs.append(2, bytes_of(stored));
  }

 private:
  // A profile without a global scale has 1, which encodings store.
  bool has_global() const { return options_.recipe.profile != Profile::flashrt; }

  Status quantize_weight(const PlannedTensor& planned, const Matrix& plain, MutableMatrix& quantized, float& global) {
    const auto amax = group_amax(planned);
    FINESCALE_TRY(amax);
    QuantizeProblem problem;
    problem.from = plain;
    problem.recipe = options_.recipe;
    if (has_global()) {
      quantized.global_kind = GlobalScale::one;
      quantized.global = &global;
      if (groups_.members(*planned.source).size() > 1) {
        FINESCALE_TRY(shared_global(*amax, global));
        problem.global_given = true;
      }
    }
    problem.to = quantized;
    return run_on_host(problem, device_);
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

  // What the profile would take as the global scale of a matrix with this amax: that of the 1 x 1 matrix {amax}.
  Status shared_global(float amax, float& global) const {
    const std::array<float, 1> element{amax};
    std::array<std::byte, 16> code{}, scale{};
    QuantizeProblem problem;
    problem.from = {.format = kF32, .rows = 1, .cols = 1, .alignment = 4, .data = bytes_of(element).data()};
    problem.to = {.format = encoding_.format, .rows = 1, .cols = 1, .global_kind = GlobalScale::one, .alignment = 1};
    problem.to.data = code.data();
    problem.to.scales = scale.data();
    problem.to.global = &global;
    problem.recipe = options_.recipe;
    return run_on_host(problem, device_);
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
