// What tensor names tell: which weights are linear layers, which of them engines fuse, which a pattern means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finescale::checkpoint {

inline constexpr std::string_view kWeightSuffix = ".weight";

// * stands for any characters, dots too; ? for one.
bool glob_match(std::string_view pattern, std::string_view text);

// "a.b" of "a.b.weight"; nothing where the name does not end with the suffix or has nothing before it.
std::optional<std::string_view> module_of(std::string_view tensor_name, std::string_view suffix = kWeightSuffix);

// The last dotted part: "q_proj" of "model.layers.0.self_attn.q_proj".
std::string_view last_part(std::string_view module);

// Why a *.weight is no linear layer by its name: the dotted part that is or contains embed, norm, lm_head or router, or is exactly
// gate. Empty: nothing speaks against it.
std::string_view not_linear_part(std::string_view tensor_name);

// Modules with equal keys are fused by engines into one matrix with one global scale: q/k/v and gate/up of the same parent.
// A module outside every such family is its own key.
std::string fusion_key(std::string_view module);

// The parts of a module that is stored fused, as modules: qkv_proj, gate_up_proj; else empty.
std::vector<std::string> fused_parts(std::string_view module);

}  // namespace finescale::checkpoint
