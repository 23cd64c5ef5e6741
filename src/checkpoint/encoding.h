// Encodings: how a quantized weight lies in a checkpoint. One row of encodings() each: which tensors it takes, what its scalars
// mean, what the configs say. To add one, add a file with its functions and a row in encodings.cc.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization_metadata.h"

#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finescale::checkpoint {

struct Encoding;

// A quantized weight of an open checkpoint, N x K, as a tagged matrix over its mapped memory.
struct QuantizedWeight {
  const Encoding* encoding = nullptr;
  std::string module;  // "model.layers.0.mlp.up_proj"
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* global = nullptr;
  const Tensor* input_scale = nullptr;   // null: absent
  std::vector<const Tensor*> modifiers;  // tensors that change what the weight means and that no op applies (pre_quant_scale)
  Matrix tags{};                         // without its global scale
  float global_scale = 1.0f;             // the decode multiplier

  // Valid while this object stays where it is, and its checkpoint open.
  Matrix matrix() const {
    Matrix whole = tags;
    whole.global_kind = GlobalScale::one;
    whole.global = &global_scale;
    return whole;
  }
};

// The tensors of one weight on disk.
struct WeightTensors {
  TensorSpec codes, scales, global, input_scale;
};

// What an encoding's configs say about a whole checkpoint.
struct QuantizedModules {
  bool activations = false;
  std::string kv_cache;               // a value of ModelOpt's kv_cache_quant_algo; empty: not quantized
  std::vector<std::string> excluded;  // modules with a plain weight, by exact name
};

struct Encoding {
  std::string_view name;      // as the command line says it
  std::string_view sentence;  // what it is, for people
  Format format;
  // Whether metadata names it.
  bool (*declared)(const QuantizationMetadata& metadata);
  // The weight whose codes are `tensor`. Nothing: its name is not one of this encoding. io_error: it is, but a dtype, a shape or
  // a scalar contradicts it.
  Result<std::optional<QuantizedWeight>> (*find)(const Checkpoint& checkpoint, const Tensor& tensor);
  // The tensors of a weight of rows x cols. unsupported: it cannot be expressed.
  Result<WeightTensors> (*tensors)(std::string_view module, std::int64_t rows, std::int64_t cols);
  // Whether its scalars are divisors (encode multipliers): then they are the reciprocals of ours.
  bool divides;
  // quantization_config of config.json as JSON text, and hf_quant_config.json (empty: the encoding has none).
  std::string (*quantization_config)(const QuantizedModules& modules);
  std::string (*modelopt_config)(const QuantizedModules& modules);

  // The scalar to store for a decode multiplier, and back.
  float stored_global(float multiplier) const { return divides ? 1.0f / multiplier : multiplier; }
  float multiplier(float stored) const { return divides ? 1.0f / stored : stored; }
};

std::span<const Encoding* const> encodings();
// Null where there is none of that name.
const Encoding* find_encoding(std::string_view name);
// "modelopt, compressed_tensors"
std::string encoding_names();

// A tensor that looks quantized and that no encoding reads, and why.
struct UnreadTensor {
  const Tensor* tensor = nullptr;
  Status why;
};

struct Recognition {
  QuantizationMetadata metadata;
  std::vector<QuantizedWeight> weights;
  std::vector<UnreadTensor> unread;
  std::vector<std::string> notes;
  std::unordered_map<const Tensor*, std::size_t> parts;  // tensor -> index of the weight that it is a part of

  // The weight that `tensor` is a part of, or null.
  const QuantizedWeight* weight_of(const Tensor& tensor) const;
};

// By metadata first, then confirmed by names, dtypes and shapes; where there is no metadata a note says so. io_error: unreadable configs.
Result<Recognition> recognize(const Checkpoint& checkpoint);

}  // namespace finescale::checkpoint
