// What the configs of an output checkpoint say about its quantization.
#pragma once

#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/encoding.h"

namespace finescale::checkpoint {

// Modules that stay plain in the output, by the tensors that the plan copies: each rank-2 *.weight, and lm_head, which may be tied
// to the embedding and then has no tensor of its own.
std::vector<std::string> plain_modules(const CheckpointPlan& plan);

// Sets plan.configs and plan.metadata so that the output is declared as `encoding`.
Status declare_quantized(const Checkpoint& checkpoint, const Encoding& encoding, const QuantizedModules& modules, CheckpointPlan& plan);
// ... or as not quantized.
Status declare_plain(const Checkpoint& checkpoint, CheckpointPlan& plan);

}  // namespace finescale::checkpoint
