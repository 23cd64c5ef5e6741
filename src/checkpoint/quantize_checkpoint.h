// Quantizes the linear weights of a checkpoint; everything else is copied byte for byte.
//
// Selected by default: rank 2, f32, f16 or bf16, named *.weight, none of whose dotted parts is or contains embed, norm, lm_head or
// router, or is exactly gate. Weights that engines fuse (q/k/v, gate/up) share one global scale, that of their largest amax.
#pragma once

#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/encoding.h"

#include <finescale/device.h>
#include <finescale/formats/recipe.h>

namespace finescale::checkpoint {

struct QuantizeCheckpointOptions {
  const Encoding* encoding = nullptr;  // null: the first of encodings(), ModelOpt nvfp4
  Recipe recipe{};
  // Globs with * and ? over tensor names or module names. `include` overrides `exclude`, which overrides the rule above; what is
  // not a plain rank-2 *.weight is never quantized.
  std::vector<std::string> include{}, exclude{};
  bool share_global = true;      // siblings share their global scale
  bool allow_nonfinite = false;  // a tensor with NaN or Inf is quantized (its blocks become NaN) rather than refused
  bool measure = false;          // compare each quantized weight with the original
};

// How far a quantized weight is from the original.
struct WeightError {
  std::string tensor;
  double relative_rms = 0;                    // sqrt(sum (x - y)^2 / sum x^2)
  double worst_block = 0;                     // the same of the block where it is largest
  std::int64_t worst_row = 0, worst_col = 0;  // where that block starts
};

struct QuantizeCheckpointReport {
  CheckpointPlan plan;
  std::vector<WeightError> errors;  // with options.measure
};

// Looks at names, dtypes and shapes only. invalid_argument: the checkpoint is quantized already; unsupported: a recipe that the encoding
// cannot hold.
Result<CheckpointPlan> plan_quantize_checkpoint(const Checkpoint& checkpoint, const QuantizeCheckpointOptions& options);
// invalid_argument also for a selected tensor with NaN or Inf, by name. `device` must be a CPU.
Result<QuantizeCheckpointReport> quantize_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out,
                                                     const QuantizeCheckpointOptions& options, const OutputOptions& output,
                                                     const Device& device);

}  // namespace finescale::checkpoint
