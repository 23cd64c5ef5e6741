#include "checkpoint/compressed_tensors_nvfp4.h"

#include "checkpoint/json_text.h"
#include "checkpoint/nvfp4_tensors.h"

namespace finescale::checkpoint {
namespace {

constexpr const char* kFormatName = "nvfp4-pack-quantized";

const Nvfp4Names& names() {
  static const Nvfp4Names kNames{.codes = ".weight_packed",
                                 .scales = ".weight_scale",
                                 .global = ".weight_global_scale",
                                 .input_scale = ".input_global_scale",
                                 .scalar = {1},
                                 .modifiers = {}};
  return kNames;
}

bool declared(const QuantizationMetadata& metadata) { return metadata.method == "compressed-tensors"; }

Result<std::optional<QuantizedWeight>> find(const Checkpoint& checkpoint, const Tensor& tensor) {
  return find_nvfp4(checkpoint, tensor, names(), kCompressedTensorsNvfp4);
}

Result<WeightTensors> tensors(std::string_view module, std::int64_t rows, std::int64_t cols) {
  return nvfp4_tensors(module, rows, cols, names());
}

std::string quantization_config(const QuantizedModules& modules) {
  const auto numbers = [](Json dynamic) -> Json {
    return {{"num_bits", 4},
            {"type", "float"},
            {"strategy", "tensor_group"},
            {"group_size", kNvfp4.block_cols},
            {"symmetric", true},
            {"dynamic", std::move(dynamic)}};
  };
  const Json group = {{"targets", {"Linear"}},
                      {"format", kFormatName},
                      {"weights", numbers(false)},
                      {"input_activations", modules.activations ? numbers("local") : Json()},
                      {"output_activations", Json()}};
  Json kv_cache;
  if (!modules.kv_cache.empty()) {
    kv_cache = {{"num_bits", modules.kv_cache.starts_with("NVFP4") ? 4 : 8},
                {"type", "float"},
                {"strategy", "tensor"},
                {"dynamic", false},
                {"symmetric", true}};
  }
  return json_text({{"config_groups", {{"group_0", group}}},
                    {"format", kFormatName},
                    {"ignore", modules.excluded},
                    {"kv_cache_scheme", kv_cache},
                    {"quant_method", "compressed-tensors"},
                    {"quantization_status", "compressed"}});
}

std::string no_modelopt_config(const QuantizedModules&) { return {}; }

}  // namespace

const Encoding kCompressedTensorsNvfp4{
    .name = "compressed_tensors",
    .sentence = "compressed-tensors nvfp4-pack-quantized: weight_packed, weight_scale, weight_global_scale (divides)",
    .format = kNvfp4,
    .declared = declared,
    .find = find,
    .tensors = tensors,
    .divides = true,
    .quantization_config = quantization_config,
    .modelopt_config = no_modelopt_config};

}  // namespace finescale::checkpoint
