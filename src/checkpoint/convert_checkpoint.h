// Rewrites quantized weights in another encoding of the same format. Codes and block scales keep their bytes; scalars are renamed,
// and inverted where one encoding multiplies by them and the other divides.
#pragma once

#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/encoding.h"

namespace finescale::checkpoint {

// io_error or unsupported: a weight that cannot be read, or that `to` cannot express. A note counts the scalars whose FP32
// reciprocal does not lead back to the same bits.
Result<CheckpointPlan> plan_convert_checkpoint(const Checkpoint& checkpoint, const Encoding& to);
Result<CheckpointPlan> convert_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& out, const Encoding& to,
                                          const OutputOptions& output);

}  // namespace finescale::checkpoint
