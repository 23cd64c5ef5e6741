// One pass over the elements of a plain tensor: its largest finite magnitude, and what is not finite.
#pragma once

#include "checkpoint/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace finescale::checkpoint {

struct ElementFacts {
  float amax = 0;                     // over finite elements
  std::int64_t nonfinite = 0;         // elements that are NaN or Inf
  std::int64_t first_nonfinite = -1;  // index of the first of them
};

// dtype: f32, f16 or bf16; at any address.
ElementFacts scan_elements(Dtype dtype, std::span<const std::byte> bytes);

}  // namespace finescale::checkpoint
