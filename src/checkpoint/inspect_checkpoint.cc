#include "checkpoint/inspect_checkpoint.h"

#include "checkpoint/nvfp4_tensors.h"
#include "checkpoint/tensor_names.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace finescale::checkpoint {
namespace {

class Findings {
 public:
  std::vector<Finding> list;

  void mention(std::string tensor, std::string sentence) { list.push_back({Severity::mention, std::move(tensor), std::move(sentence)}); }
  void suspect(std::string tensor, std::string sentence) { list.push_back({Severity::suspicious, std::move(tensor), std::move(sentence)}); }
};

bool block_has_codes(const Matrix& matrix, std::int64_t row, std::int64_t col) {
  const std::int64_t last = std::min(matrix.cols, col + matrix.format.block_cols);
  for (; col < last; ++col) {
    if (element_at(matrix, 0, row, col) != 0) return true;
  }
  return false;
}

ScaleFacts scan_scales(const Matrix& packed) {
  const Matrix matrix = with_strides(packed);
  ScaleFacts facts;
  facts.smallest = max_value(matrix.format.scale);
  for (std::int64_t row = 0; row < matrix.rows; row += matrix.format.block_rows) {
    for (std::int64_t col = 0; col < matrix.cols; col += matrix.format.block_cols) {
      const float scale = block_scale_at(matrix, 0, row, col);
      facts.negative += std::signbit(scale) && !is_nan(scale) ? 1 : 0;
      if (is_nan(scale)) {
        ++facts.nan;
      } else if (scale == 0) {
        ++facts.zero;
        facts.zero_with_codes += block_has_codes(matrix, row, col) ? 1 : 0;
      } else {
        facts.smallest = std::min(facts.smallest, std::abs(scale));
        facts.largest = std::max(facts.largest, std::abs(scale));
      }
    }
  }
  facts.smallest = std::min(facts.smallest, facts.largest);
  return facts;
}

void judge_scales(const QuantizedWeight& weight, const ScaleFacts& facts, Findings& findings) {
  const std::string& name = weight.scales->name;
  if (facts.nan != 0) findings.suspect(name, fmt::format("{} block scales are NaN: those blocks decode to NaN", facts.nan));
  if (facts.negative != 0)
    findings.suspect(name, fmt::format("{} block scales have the sign bit set, which some hardware ignores", facts.negative));
  if (facts.zero_with_codes != 0)
    findings.suspect(name, fmt::format("{} block scales are zero over codes that are not", facts.zero_with_codes));
}

// A multiplier is amax / (E S), far below 1 for real weights; a divisor far above.
void judge_global(const QuantizedWeight& weight, Findings& findings) {
  const float stored = read_scalar(*weight.global);
  const float reach = largest_value(weight.tags.format);
  if (!(stored > 0) || !std::isfinite(stored) || !std::isfinite(weight.global_scale)) {
    findings.suspect(weight.global->name, fmt::format("is {}; a global scale is finite and greater than 0", stored));
  } else if (weight.global_scale > 1) {
    const bool divides = weight.encoding->divides;
    findings.suspect(weight.global->name,
                     fmt::format("{} = {}: as this encoding's {} it implies weights up to {}, as a {} up to {}",
                                 last_part(weight.global->name), stored, divides ? "divisor" : "multiplier", weight.global_scale * reach,
                                 divides ? "multiplier" : "divisor", reach / weight.global_scale));
  }
  if (weight.input_scale == nullptr) return;
  if (const float input = read_scalar(*weight.input_scale); !(input > 0) || !std::isfinite(input)) {
    findings.suspect(weight.input_scale->name, fmt::format("is {}; an input scale is finite and greater than 0", input));
  }
}

void judge_weight(const QuantizedWeight& weight, const QuantizationMetadata& metadata, Findings& findings) {
  judge_global(weight, findings);
  const std::int64_t block = weight.tags.format.block_cols;
  if (weight.tags.cols % block != 0) {
    findings.mention(weight.codes->name,
                     fmt::format("K = {}: the last block of each row holds {} elements", weight.tags.cols, weight.tags.cols % block));
  }
  if (metadata.activations && weight.input_scale == nullptr && weight.encoding->name == "modelopt") {
    findings.suspect(weight.module, fmt::format("has no input_scale, but {} says that activations are quantized ({})", metadata.source,
                                                metadata.algorithm));
  }
  for (const Tensor* modifier : weight.modifiers)
    findings.mention(modifier->name, "changes what the weight means; it is not applied when it is dequantized");
  if (is_excluded(metadata.excluded, weight.module)) {
    findings.suspect(weight.module, fmt::format("is quantized, though {} excludes it; what is stored counts", metadata.source));
  }
}

void judge_fused(const std::vector<InspectedWeight>& weights, Findings& findings) {
  std::map<std::string, const QuantizedWeight*> first;
  for (const InspectedWeight& inspected : weights) {
    const QuantizedWeight& weight = inspected.weight;
    const auto [place, fresh] = first.emplace(fusion_key(weight.module), &weight);
    const QuantizedWeight& other = *place->second;
    if (fresh || float_bits(other.global_scale) == float_bits(weight.global_scale)) continue;
    findings.suspect(weight.module, fmt::format("global scale {}, but {} of the same fused group has {}; engines that fuse them keep one",
                                                weight.global_scale, last_part(other.module), other.global_scale));
  }
}

// Two weights of one module would share its block scales: one of them is left over from another encoding.
void judge_modules(const std::vector<InspectedWeight>& weights, Findings& findings) {
  std::map<std::string_view, const QuantizedWeight*> first;
  for (const InspectedWeight& inspected : weights) {
    const QuantizedWeight& weight = inspected.weight;
    const auto [place, fresh] = first.emplace(weight.module, &weight);
    if (fresh) continue;
    findings.suspect(weight.module, fmt::format("is stored twice, as {} and as {}", place->second->codes->name, weight.codes->name));
  }
}

// Plain matrices that the metadata says are quantized, with one sentence for all of them.
void judge_plain(const Checkpoint& checkpoint, const Recognition& recognition, Findings& findings) {
  if (recognition.weights.empty()) return;
  std::int64_t count = 0;
  std::string example;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const auto module = module_of(tensor.name);
    if (!module || !is_plain(tensor.dtype) || tensor.shape.size() != 2 || !not_linear_part(tensor.name).empty()) continue;
    if (is_excluded(recognition.metadata.excluded, *module)) continue;
    if (count++ == 0) example = tensor.name;
  }
  if (count == 0 || recognition.metadata.absent()) return;
  findings.suspect(example,
                   fmt::format("{} linear weights are stored plain ({} is one), but {} does not exclude them; what is stored counts", count,
                               example, recognition.metadata.source));
}

}  // namespace

Result<Inspection> inspect_checkpoint(const Checkpoint& checkpoint, const InspectOptions& options) {
  auto recognition = recognize(checkpoint);
  FINESCALE_TRY(recognition);
  Findings findings;
  Inspection inspection;
  for (const std::string& note : checkpoint.notes()) findings.mention({}, note);
  for (const std::string& note : recognition->notes) findings.mention({}, note);
  for (const UnreadTensor& unread : recognition->unread) findings.suspect(unread.tensor->name, unread.why.sentence);
  for (const QuantizedWeight& weight : recognition->weights) {
    InspectedWeight inspected{weight, {}};
    judge_weight(weight, recognition->metadata, findings);
    if (options.scan_values) {
      inspected.scales = scan_scales(weight.matrix());
      judge_scales(weight, inspected.scales, findings);
      checkpoint.release(*weight.scales, weight.scales->bytes);
    }
    inspection.weights.push_back(std::move(inspected));
  }
  judge_modules(inspection.weights, findings);
  judge_fused(inspection.weights, findings);
  judge_plain(checkpoint, *recognition, findings);
  inspection.metadata = std::move(recognition->metadata);
  inspection.unread = std::move(recognition->unread);
  inspection.findings = std::move(findings.list);
  return inspection;
}

}  // namespace finescale::checkpoint
