// compressed-tensors nvfp4-pack-quantized: <m>.weight_packed, <m>.weight_scale, <m>.weight_global_scale and, where the scale of
// activations is not found at run time, <m>.input_global_scale; every scalar divides. Config: quantization_config of config.json.
#pragma once

#include "checkpoint/encoding.h"

namespace finescale::checkpoint {

extern const Encoding kCompressedTensorsNvfp4;

}  // namespace finescale::checkpoint
