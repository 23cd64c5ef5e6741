// What a checkpoint says about its quantization: config.json "quantization_config", hf_quant_config.json, or the same JSON as
// a string in a file's __metadata__ (single files have no config beside them).
#pragma once

#include "checkpoint/checkpoint.h"

#include <finescale/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace finescale::checkpoint {

struct QuantizationMetadata {
  std::string source;                 // where it stands; empty: nowhere
  std::string method;                 // "modelopt", "compressed-tensors", "mxfp4", "fp8", "comfy", ...
  std::string algorithm;              // ModelOpt's quant_algo, compressed-tensors' format
  std::string kv_cache;               // how the KV cache is quantized; empty: it is not
  bool activations = false;           // activations are quantized too (W4A4): weights carry an input scale
  std::vector<std::string> excluded;  // patterns of modules that are said to be left alone

  bool absent() const { return source.empty(); }
};

// The key of __metadata__ under which a single file carries its quantization_config.
inline constexpr const char* kMetadataKey = "quantization_config";

// io_error: a config that is not JSON, or lists of the wrong kind.
Result<QuantizationMetadata> read_quantization_metadata(const Checkpoint& checkpoint);

// Whether a list of excluded modules names `module`. A pattern is an exact name, a glob with *, or "re:" and a regular expression;
// it also counts where only one side has a leading "model.", and a fused module (qkv_proj, gate_up_proj) where it names a part.
bool is_excluded(const std::vector<std::string>& excluded, std::string_view module);

}  // namespace finescale::checkpoint
