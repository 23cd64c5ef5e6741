// What an operation will do with every tensor of a checkpoint, before it does it; and the machinery that carries it out.
#pragma once

#include "checkpoint/atomic_output.h"
#include "checkpoint/checkpoint.h"

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finescale::checkpoint {

enum class Action : std::uint8_t { copy, quantize, dequantize, convert, drop };

constexpr std::string_view action_name(Action action) {
  constexpr std::string_view kNames[] = {"copy", "quantize", "dequantize", "convert", "drop"};
  return kNames[static_cast<std::size_t>(action)];
}

struct PlannedTensor {
  const Tensor* source = nullptr;
  Action action = Action::copy;
  std::string reason;               // why this action, for people
  std::vector<TensorSpec> outputs;  // in the shard of `source`; a copy keeps name, dtype and shape, a drop has none
};

// A file of the output directory whose text is made rather than copied; no text: it is left out.
struct ConfigText {
  std::string name, text;
};

struct CheckpointPlan {
  std::vector<PlannedTensor> tensors;  // every tensor of the checkpoint once, in its order
  std::vector<ConfigText> configs;     // of a directory
  StringMap metadata;                  // added to __metadata__ of a single file; no value: the key is left out
  std::vector<std::string> notes;      // what a user should know, a sentence each

  std::int64_t count(Action action) const;
  std::int64_t bytes_in() const;
  std::int64_t bytes_out() const;
};

struct Progress {
  std::string_view tensor;  // about to be written
  std::int64_t index = 0, count = 0;
  std::int64_t bytes = 0, total_bytes = 0;  // of the input, done and in all
};

struct OutputOptions {
  Existing existing = Existing::refuse;
  // Called before each tensor and once at the end; false stops, and nothing is left behind.
  std::function<bool(const Progress&)> progress{};
};

// Takes the bytes of a planned tensor's outputs, each from its start, in pieces or whole.
class OutputTensors {
 public:
  virtual ~OutputTensors() = default;
  virtual Status append(std::size_t output, std::span<const std::byte> bytes) = 0;
};

// Makes the outputs of one planned tensor; not called for copies and drops.
using MakeOutputs = std::function<Status(const PlannedTensor& planned, OutputTensors& outputs)>;

// The plan of a tensor that stays as it is.
PlannedTensor planned_copy(const Tensor& tensor, std::string reason);

// Writes the planned checkpoint: a file for a file, a directory (same shard names, a new index, configs, companions) for a
// directory; atomically, one shard at a time, one tensor at a time.
Status write_checkpoint(const Checkpoint& checkpoint, const CheckpointPlan& plan, const std::filesystem::path& out,
                        const OutputOptions& options, const MakeOutputs& make_outputs);

}  // namespace finescale::checkpoint
