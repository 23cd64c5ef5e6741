// Which GPUs the machine code of this build runs on. Plain arithmetic on names, tested without a GPU.
//
//   "80"    runs on its own major version, from that minor version on (8.0, 8.6, 8.9)
//   "90a"   architecture-specific code: that capability only (9.0)
//   "100f"  family code: its own major version, from that minor version on (10.0, 10.3)
// Source: CUDA C++ Programming Guide 13.0, "Compute capabilities", architecture- and family-specific features.
#pragma once

#include <cstdint>
#include <string_view>

namespace finescale::cuda {

// architecture: one name of FINESCALE_CUDA_ARCHITECTURES; capability: 10 * major + minor of a GPU.
constexpr bool architecture_runs_on(std::string_view architecture, std::int32_t capability) {
  std::int32_t built = 0;
  while (!architecture.empty() && architecture.front() >= '0' && architecture.front() <= '9') {
    built = 10 * built + (architecture.front() - '0');
    architecture.remove_prefix(1);
  }
  if (built == 0) return false;
  if (architecture == "a") return built == capability;
  if (!architecture.empty() && architecture != "f") return false;
  return built / 10 == capability / 10 && built <= capability;
}

// architectures: names separated by ';'.
constexpr bool any_architecture_runs_on(std::string_view architectures, std::int32_t capability) {
  while (!architectures.empty()) {
    const std::size_t end = architectures.find(';');
    if (architecture_runs_on(architectures.substr(0, end), capability)) return true;
    architectures.remove_prefix(end == std::string_view::npos ? architectures.size() : end + 1);
  }
  return false;
}

static_assert(architecture_runs_on("80", 86) && !architecture_runs_on("89", 86) && !architecture_runs_on("80", 90));
static_assert(architecture_runs_on("90a", 90) && !architecture_runs_on("90a", 91));
static_assert(architecture_runs_on("100f", 103) && !architecture_runs_on("100f", 110) && architecture_runs_on("120f", 121));
static_assert(any_architecture_runs_on("80;90a;120f", 90) && !any_architecture_runs_on("80;90a;120f", 100) &&
              !any_architecture_runs_on("", 90));

}  // namespace finescale::cuda
