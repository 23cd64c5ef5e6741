// Turns every quantized weight of a checkpoint back into a plain one; its scales are dropped, the rest is copied byte for byte.
#pragma once

#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/encoding.h"

#include <finescale/device.h>

namespace finescale::checkpoint {

struct DequantizeCheckpointOptions {
  Dtype dtype = Dtype::bf16;  // f32, f16 or bf16
};

// io_error or unsupported: a tensor looks quantized, but no encoding reads it; the sentence says why.
Result<CheckpointPlan> plan_dequantize_checkpoint(const Checkpoint& checkpoint, const DequantizeCheckpointOptions& options);
// The plan that was carried out; its notes tell of values that overflowed f16. `device` must be a CPU.
Result<CheckpointPlan> dequantize_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out,
                                             const DequantizeCheckpointOptions& options, const OutputOptions& output, const Device& device);

}  // namespace finescale::checkpoint
