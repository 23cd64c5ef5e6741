// ModelOpt nvfp4: <m>.weight, <m>.weight_scale, <m>.weight_scale_2 and, where activations are quantized, <m>.input_scale; every
// scalar multiplies. Configs: hf_quant_config.json, and the same facts as quantization_config of config.json.
#pragma once

#include "checkpoint/encoding.h"

namespace finescale::checkpoint {

extern const Encoding kModelOptNvfp4;

}  // namespace finescale::checkpoint
