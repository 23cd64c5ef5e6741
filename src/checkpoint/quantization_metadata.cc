#include "checkpoint/quantization_metadata.h"

#include "checkpoint/json_text.h"
#include "checkpoint/tensor_names.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace finescale::checkpoint {
namespace {

// The strings of a list under the first of the keys that is there.
Status read_list(const Json& object, std::initializer_list<const char*> keys, std::string_view source, std::vector<std::string>& list) {
  for (const char* key : keys) {
    const auto member = object.find(key);
    if (member == object.end() || member->is_null()) continue;
    if (!member->is_array()) return io_error(fmt::format("{}: \"{}\" is not a list", source, key));
    for (const Json& item : *member) {
      if (!item.is_string()) return io_error(fmt::format("{}: \"{}\" holds something that is not a string", source, key));
      list.push_back(item.get<std::string>());
    }
    return {};
  }
  return {};
}

// Whether any config group quantizes the activations that come in.
bool groups_quantize_activations(const Json& object) {
  const auto groups = object.find("config_groups");
  if (groups == object.end() || !groups->is_object()) return false;
  for (const Json& group : *groups) {
    if (!group.is_object()) continue;
    if (const auto input = group.find("input_activations"); input != group.end() && !input->is_null()) return true;
  }
  return false;
}

std::string kv_cache_of(const Json& object) {
  if (std::string algorithm = string_member(object, "kv_cache_quant_algo"); !algorithm.empty()) return algorithm;
  const auto scheme = object.find("kv_cache_scheme");
  if (scheme == object.end() || !scheme->is_object()) return {};
  const auto bits = scheme->find("num_bits");
  return bits != scheme->end() && *bits == 4 ? "NVFP4" : "FP8";
}

// A quantization_config, or the "quantization" object of hf_quant_config.json.
Result<QuantizationMetadata> read_object(const Json& object, std::string source, std::string_view default_method) {
  if (!object.is_object()) return io_error(fmt::format("{}: not an object", source));
  QuantizationMetadata metadata;
  metadata.source = std::move(source);
  metadata.method = string_member(object, "quant_method", default_method);
  metadata.algorithm = string_member(object, "quant_algo", string_member(object, "format"));
  metadata.kv_cache = kv_cache_of(object);
  FINESCALE_TRY(read_list(object, {"exclude_modules", "ignore", "modules_to_not_convert"}, metadata.source, metadata.excluded));
  const bool weight_only = metadata.algorithm.find("A16") != std::string::npos || metadata.algorithm.ends_with("_WO");
  metadata.activations = metadata.method == "modelopt" ? !metadata.algorithm.empty() && !weight_only : groups_quantize_activations(object);
  return metadata;
}

Result<QuantizationMetadata> from_text(const std::string& text, const std::string& source, std::initializer_list<const char*> members,
                                       std::string_view default_method) {
  const auto json = parse_json(text, source);
  FINESCALE_TRY(json);
  for (const char* member : members) {
    if (!json->is_object()) break;
    const auto found = json->find(member);
    if (found != json->end() && !found->is_null()) return read_object(*found, fmt::format("{} \"{}\"", source, member), default_method);
  }
  return members.size() == 0 ? read_object(*json, source, default_method) : QuantizationMetadata{};
}

// Markers of files whose tensor names equal ModelOpt's, but not their meaning.
std::string comfy_marker(const Checkpoint& checkpoint) {
  for (std::size_t shard = 0; shard < checkpoint.shard_count(); ++shard) {
    if (checkpoint.shard_metadata(shard).contains("_quantization_metadata")) return "__metadata__ \"_quantization_metadata\"";
  }
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (tensor.name.ends_with(".comfy_quant")) return tensor.name;
  }
  return {};
}

// "re:..." as a glob, where it is made of literals, ".", ".*", "\.", "^" and "$" alone. It matches from the start on, as Python's re.match.
std::optional<std::string> glob_of_expression(std::string_view expression) {
  std::string glob;
  bool to_the_end = false;
  if (expression.starts_with('^')) expression.remove_prefix(1);
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && next == '.') {
      glob += '.';
      ++i;
    } else if (c == '.') {
      glob += next == '*' ? '*' : '?';
      i += next == '*' ? 1 : 0;
    } else if (c == '$' && next == '\0') {
      to_the_end = true;
    } else if (std::string_view("\\[](){}|+*?^$").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      glob += c;
    }
  }
  return to_the_end ? glob : glob + "*";
}

bool names(std::string_view pattern, std::string_view module) {
  constexpr std::string_view kPrefix = "model.";
  std::string glob(pattern);
  if (pattern.starts_with("re:")) {
    const auto read = glob_of_expression(pattern.substr(3));
    if (!read) return false;
    glob = *read;
  }
  return glob_match(glob, module) || glob_match(glob, fmt::format("{}{}", kPrefix, module)) ||
         (module.starts_with(kPrefix) && glob_match(glob, module.substr(kPrefix.size())));
}

}  // namespace

Result<QuantizationMetadata> read_quantization_metadata(const Checkpoint& checkpoint) {
  QuantizationMetadata metadata;
  if (std::string marker = comfy_marker(checkpoint); !marker.empty()) {
    metadata.source = std::move(marker);
    metadata.method = "comfy";
    return metadata;
  }
  if (const std::string* text = checkpoint.config(kConfigFile)) {
    auto read = from_text(*text, kConfigFile, {"quantization_config", "compression_config"}, "");
    FINESCALE_TRY(read);
    if (!read->absent()) return read;
  }
  if (const std::string* text = checkpoint.config(kModelOptConfigFile))
    return from_text(*text, kModelOptConfigFile, {"quantization"}, "modelopt");
  for (std::size_t shard = 0; shard < checkpoint.shard_count(); ++shard) {
    const auto found = checkpoint.shard_metadata(shard).find(kMetadataKey);
    if (found != checkpoint.shard_metadata(shard).end())
      return from_text(found->second, fmt::format("__metadata__ \"{}\"", kMetadataKey), {}, "");
  }
  return metadata;
}

bool is_excluded(const std::vector<std::string>& excluded, std::string_view module) {
  std::vector<std::string> candidates = fused_parts(module);
  candidates.emplace_back(module);
  for (const std::string& pattern : excluded) {
    for (const std::string& candidate : candidates) {
      if (names(pattern, candidate)) return true;
    }
  }
  return false;
}

}  // namespace finescale::checkpoint
