// Recipes: how a quantizer scales and rounds. A recipe is a value; a row of kProfiles names one that reproduces a
// known quantizer byte for byte (docs/quantizers.md).
#pragma once

#include <finescale/formats/format.h>

#include <cstdint>
#include <string_view>

namespace finescale {

enum class Profile : std::uint8_t { finescale, flashrt, modelopt, compressed_tensors, torchao, deepgemm };

// Which block scale is kept. four_six and mse try more than the one that amax gives; nvfp4 only.
enum class ScaleSearch : std::uint8_t { max, four_six, mse };

struct Recipe {
  Profile profile = Profile::finescale;
  PowerRule power = PowerRule::round_up;  // E8M0 scales
  ScaleSearch search = ScaleSearch::max;
  Rounding rounding = Rounding::nearest_even;  // elements; stochastic reads `seed`
  bool pow2 = false;                           // FP32 scales: rounded up to a power of two
  std::uint64_t seed = 0;                      // Philox4x32-10 key of stochastic rounding

  bool operator==(const Recipe&) const = default;
};

struct NamedProfile {
  std::string_view name;
  Profile profile;
  std::string_view reproduces;  // the system, its version and its code path
};

inline constexpr NamedProfile kProfiles[] = {
    {"finescale", Profile::finescale, "docs/quantizers.md"},
    {"flashrt", Profile::flashrt, "FlashRT fp4-gemm quantize_fp4_sfa at 8a66d8b, IEEE division"},
    {"modelopt", Profile::modelopt, "NVIDIA Model Optimizer 0.47.0 NVFP4QTensor.quantize, CPU path"},
    {"compressed_tensors", Profile::compressed_tensors, "compressed-tensors 0.20.0 nvfp4-pack-quantized, CPU path"},
    {"torchao", Profile::torchao, "torchao 0.18.0 nvfp4_quantize"},
    {"deepgemm", Profile::deepgemm, "DeepGEMM 54e2261 per_token_cast_to_fp8, per_block_cast_to_fp8, per_token_cast_to_fp4"},
};

}  // namespace finescale
