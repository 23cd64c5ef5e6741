// What the nvfp4 encodings have in common: E2M1 codes U8 [N, K/2] (even column in the low nibble), E4M3 scales [N, ceil(K/16)],
// both row-major, one F32 scalar. They differ in names and in what the scalar means.
#pragma once

#include "checkpoint/encoding.h"

#include <finescale/status.h>

#include <optional>
#include <string_view>
#include <vector>

namespace finescale::checkpoint {

struct Nvfp4Names {
  std::string_view codes, scales, global, input_scale;  // after the module's name
  Shape scalar;                                         // as this encoding writes it; read in any shape of one element
  std::vector<std::string_view> modifiers;              // see QuantizedWeight::modifiers
};

// Encoding::find. The tensor is taken where it is named so, and the global scale stands beside it.
Result<std::optional<QuantizedWeight>> find_nvfp4(const Checkpoint& checkpoint, const Tensor& tensor, const Nvfp4Names& names,
                                                  const Encoding& encoding);
// Encoding::tensors. K must be even.
Result<WeightTensors> nvfp4_tensors(std::string_view module, std::int64_t rows, std::int64_t cols, const Nvfp4Names& names);

// The one F32 of a tensor of one element.
float read_scalar(const Tensor& tensor);

}  // namespace finescale::checkpoint
