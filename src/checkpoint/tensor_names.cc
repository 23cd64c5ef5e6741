#include "checkpoint/tensor_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace finescale::checkpoint {
namespace {

struct Family {
  std::string_view fused;  // the name of the fused module; empty: never stored so
  std::vector<std::string_view> parts;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
      {"qkv", {"query", "key", "value"}},
      {"gate_up_proj", {"gate_proj", "up_proj"}},
      {"", {"w1", "w3"}},
  };
  return kFamilies;
}

// Everything before the last part, with its dot.
std::string_view parent_of(std::string_view module) { return module.substr(0, module.size() - last_part(module).size()); }

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {  // the last star takes one character more
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<std::string_view> module_of(std::string_view tensor_name, std::string_view suffix) {
  if (!tensor_name.ends_with(suffix) || tensor_name.size() == suffix.size()) return std::nullopt;
  return tensor_name.substr(0, tensor_name.size() - suffix.size());
}

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

std::string_view not_linear_part(std::string_view tensor_name) {
  constexpr std::string_view kContained[] = {"embed", "norm", "lm_head", "router"};
  while (!tensor_name.empty()) {
    const std::string_view part = tensor_name.substr(0, tensor_name.find('.'));
    tensor_name.remove_prefix(std::min(part.size() + 1, tensor_name.size()));
    if (part == "gate") return part;
    for (const std::string_view word : kContained) {
      if (part.find(word) != std::string_view::npos) return part;
    }
  }
  return {};
}

std::string fusion_key(std::string_view module) {
  const std::string_view last = last_part(module);
  for (const Family& family : families()) {
    for (const std::string_view part : family.parts) {
      if (part == last) return fmt::format("{}{}", parent_of(module), fmt::join(family.parts, "/"));
    }
  }
  return std::string(module);
}

std::vector<std::string> fused_parts(std::string_view module) {
  std::vector<std::string> modules;
  for (const Family& family : families()) {
    if (family.fused.empty() || family.fused != last_part(module)) continue;
    for (const std::string_view part : family.parts) modules.push_back(fmt::format("{}{}", parent_of(module), part));
  }
  return modules;
}

}  // namespace finescale::checkpoint
