// The table of encodings, and which of them a checkpoint uses.
#include "checkpoint/compressed_tensors_nvfp4.h"
#include "checkpoint/encoding.h"
#include "checkpoint/modelopt_nvfp4.h"
#include "checkpoint/tensor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace finescale::checkpoint {
namespace {

constexpr const Encoding* kEncodings[] = {&kModelOptNvfp4, &kCompressedTensorsNvfp4};

// Narrow floats, and integer matrices under a name that packed weights have.
bool looks_quantized(const Tensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::f4:
    case Dtype::f6_e2m3:
    case Dtype::f6_e3m2:
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
    case Dtype::f8_e8m0:
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz: return true;
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i32:
    case Dtype::u32: break;
    default: return false;
  }
  constexpr std::string_view kEndings[] = {"weight", "weight_packed", "qweight", "_qdata", "blocks"};
  return tensor.shape.size() >= 2 && std::ranges::any_of(kEndings, [&](std::string_view ending) { return tensor.name.ends_with(ending); });
}

// The weight behind a tensor that some encoding takes, or why it is not read. Neither: it is no codes of any.
struct Found {
  std::optional<QuantizedWeight> weight;
  Status why;
};

Found find_weight(const Checkpoint& checkpoint, const Tensor& tensor, const QuantizationMetadata& metadata) {
  for (const Encoding* encoding : kEncodings) {
    auto weight = encoding->find(checkpoint, tensor);
    if (!weight) return {std::nullopt, weight.status()};
    if (!weight->has_value()) continue;
    if (metadata.absent() || encoding->declared(metadata)) return {**std::move(weight), {}};
    return {std::nullopt, unsupported(fmt::format("tensor \"{}\": is named as in {}, but {} says that the method is \"{}\"", tensor.name,
                                                  encoding->name, metadata.source, metadata.method))};
  }
  return {};
}

void add_weight(Recognition& recognition, QuantizedWeight weight) {
  const std::size_t index = recognition.weights.size();
  for (const Tensor* part : {weight.codes, weight.scales, weight.global, weight.input_scale}) {
    if (part != nullptr) recognition.parts[part] = index;
  }
  for (const Tensor* part : weight.modifiers) recognition.parts[part] = index;
  recognition.weights.push_back(std::move(weight));
}

}  // namespace

std::span<const Encoding* const> encodings() { return kEncodings; }

const Encoding* find_encoding(std::string_view name) {
  const auto found = std::ranges::find(kEncodings, name, [](const Encoding* encoding) { return encoding->name; });
  return found == std::end(kEncodings) ? nullptr : *found;
}

std::string encoding_names() {
  std::string names;
  for (const Encoding* encoding : kEncodings) names += fmt::format("{}{}", names.empty() ? "" : ", ", encoding->name);
  return names;
}

const QuantizedWeight* Recognition::weight_of(const Tensor& tensor) const {
  const auto found = parts.find(&tensor);
  return found == parts.end() ? nullptr : &weights[found->second];
}

Result<Recognition> recognize(const Checkpoint& checkpoint) {
  auto metadata = read_quantization_metadata(checkpoint);
  FINESCALE_TRY(metadata);
  Recognition recognition;
  recognition.metadata = *std::move(metadata);
  std::vector<const Tensor*> others;
  for (const Tensor& tensor : checkpoint.tensors()) {
    Found found = find_weight(checkpoint, tensor, recognition.metadata);
    if (found.weight) {
      add_weight(recognition, *std::move(found.weight));
    } else if (!found.why) {
      recognition.unread.push_back({&tensor, std::move(found.why)});
    } else {
      others.push_back(&tensor);
    }
  }
  for (const Tensor* tensor : others) {
    if (!looks_quantized(*tensor) || recognition.weight_of(*tensor) != nullptr) continue;
    recognition.unread.push_back(
        {tensor, unsupported(fmt::format("tensor \"{}\": {} {} is in no encoding that is read ({})", tensor->name,
                                         dtype_name(tensor->dtype), shape_text(tensor->shape), encoding_names()))});
  }
  if (!recognition.weights.empty() && recognition.metadata.absent()) {
    recognition.notes.push_back("no quantization config: the encoding is recognized by names, dtypes and shapes alone");
  }
  return recognition;
}

}  // namespace finescale::checkpoint
