#include "checkpoint/output_configs.h"

#include "checkpoint/json_text.h"
#include "checkpoint/tensor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace finescale::checkpoint {
namespace {

constexpr const char* kQuantizationKeys[] = {"quantization_config", "compression_config"};

Result<Json> config_object(const Checkpoint& checkpoint) {
  const std::string* text = checkpoint.config(kConfigFile);
  if (text == nullptr) return Json(Json::object());
  auto json = parse_json(*text, kConfigFile);
  FINESCALE_TRY(json);
  if (!json->is_object()) return io_error(fmt::format("{}: not an object", kConfigFile));
  return json;
}

}  // namespace

std::vector<std::string> plain_modules(const CheckpointPlan& plan) {
  constexpr std::string_view kHead = "lm_head";
  std::vector<std::string> modules;
  bool head_is_stored = false;
  for (const PlannedTensor& planned : plan.tensors) {
    const auto module = module_of(planned.source->name);
    if (!module || planned.source->shape.size() != 2) continue;
    head_is_stored = head_is_stored || last_part(*module) == kHead;
    if (planned.action == Action::copy && is_plain(planned.source->dtype)) modules.emplace_back(*module);
  }
  if (!head_is_stored) modules.emplace_back(kHead);
  std::sort(modules.begin(), modules.end());
  return modules;
}

Status declare_quantized(const Checkpoint& checkpoint, const Encoding& encoding, const QuantizedModules& modules, CheckpointPlan& plan) {
  const std::string declared = encoding.quantization_config(modules);
  const auto quantization = parse_json(declared, encoding.name);
  FINESCALE_TRY(quantization);
  plan.metadata[kMetadataKey] = json_text(*quantization, -1);
  if (!checkpoint.is_directory()) return {};
  auto config = config_object(checkpoint);
  FINESCALE_TRY(config);
  for (const char* key : kQuantizationKeys) config->erase(key);
  (*config)[kQuantizationKeys[0]] = *quantization;
  plan.configs.push_back({kConfigFile, json_text(*config) + "\n"});
  const std::string modelopt = encoding.modelopt_config(modules);
  plan.configs.push_back({kModelOptConfigFile, modelopt.empty() ? modelopt : modelopt + "\n"});
  return {};
}

Status declare_plain(const Checkpoint& checkpoint, CheckpointPlan& plan) {
  plan.metadata[kMetadataKey] = {};
  if (!checkpoint.is_directory()) return {};
  plan.configs.push_back({kModelOptConfigFile, {}});
  if (checkpoint.config(kConfigFile) == nullptr) return {};
  auto config = config_object(checkpoint);
  FINESCALE_TRY(config);
  const std::size_t erased = config->erase(kQuantizationKeys[0]) + config->erase(kQuantizationKeys[1]);
  if (erased != 0) plan.configs.push_back({kConfigFile, json_text(*config) + "\n"});
  return {};
}

}  // namespace finescale::checkpoint
