#include "checkpoint/modelopt_nvfp4.h"

#include "checkpoint/json_text.h"
#include "checkpoint/nvfp4_tensors.h"

#include <finescale/version.h>

namespace finescale::checkpoint {
namespace {

const Nvfp4Names& names() {
  static const Nvfp4Names kNames{.codes = ".weight",
                                 .scales = ".weight_scale",
                                 .global = ".weight_scale_2",
                                 .input_scale = ".input_scale",
                                 .scalar = {},
                                 .modifiers = {".pre_quant_scale", ".svdquant_lora_a", ".svdquant_lora_b"}};
  return kNames;
}

bool declared(const QuantizationMetadata& metadata) { return metadata.method == "modelopt"; }

Result<std::optional<QuantizedWeight>> find(const Checkpoint& checkpoint, const Tensor& tensor) {
  return find_nvfp4(checkpoint, tensor, names(), kModelOptNvfp4);
}

Result<WeightTensors> tensors(std::string_view module, std::int64_t rows, std::int64_t cols) {
  return nvfp4_tensors(module, rows, cols, names());
}

const char* algorithm(const QuantizedModules& modules) { return modules.activations ? "NVFP4" : "W4A16_NVFP4"; }

Json producer() { return {{"name", "finescale"}, {"version", library_version()}}; }

std::string quantization_config(const QuantizedModules& modules) {
  const Json numbers = {{"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", kNvfp4.block_cols}};
  Json group = {{"weights", numbers}, {"targets", {"Linear"}}};
  if (modules.activations) group["input_activations"] = numbers;
  Json config = {{"config_groups", {{"group_0", group}}}, {"ignore", modules.excluded}, {"quant_algo", algorithm(modules)}};
  if (!modules.kv_cache.empty()) {
    config["kv_cache_scheme"] = {{"dynamic", false}, {"num_bits", modules.kv_cache.starts_with("NVFP4") ? 4 : 8}, {"type", "float"}};
  }
  config["producer"] = producer();
  config["quant_method"] = "modelopt";
  return json_text(config);
}

std::string modelopt_config(const QuantizedModules& modules) {
  const Json quantization = {{"quant_algo", algorithm(modules)},
                             {"kv_cache_quant_algo", modules.kv_cache.empty() ? Json() : Json(modules.kv_cache)},
                             {"group_size", kNvfp4.block_cols},
                             {"exclude_modules", modules.excluded}};
  return json_text({{"producer", producer()}, {"quantization", quantization}});
}

}  // namespace

const Encoding kModelOptNvfp4{.name = "modelopt",
                              .sentence = "NVIDIA Model Optimizer nvfp4: weight, weight_scale, weight_scale_2 (multiplies)",
                              .format = kNvfp4,
                              .declared = declared,
                              .find = find,
                              .tensors = tensors,
                              .divides = false,
                              .quantization_config = quantization_config,
                              .modelopt_config = modelopt_config};

}  // namespace finescale::checkpoint
