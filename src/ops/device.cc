#include <finescale/device.h>

#include "backends/cpu/open_device.h"
#include "backends/cuda/host/open_device.h"
#include "backends/device_state.h"
#include "finescale_built.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

namespace finescale {
namespace {

std::string_view environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

DeviceOptions with_environment(DeviceOptions options) {
  if (options.kernel.empty()) options.kernel = environment("FINESCALE_KERNEL");
  if (options.cpu_level.empty()) options.cpu_level = environment("FINESCALE_CPU_LEVEL");
  return options;
}

// A name of no op would be ignored by every op, and a misspelt one would go unnoticed.
Status check_forced(std::string_view kernel) {
  constexpr std::string_view kOps[] = {"quantize", "dequantize", "repack", "prepare", "gemm", "grouped_gemm"};
  const auto begins_name = [kernel](std::string_view op) { return kernel.starts_with(op); };
  if (kernel.empty() || std::any_of(std::begin(kOps), std::end(kOps), begins_name)) return {};
  return invalid_argument(fmt::format("kernel = \"{}\": begins with the name of no op: {}", kernel, fmt::join(kOps, ", ")));
}

Result<DeviceState> open_state(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return cpu::open_device(options);
  std::int32_t ordinal = -1;
  if (name.starts_with("cuda:")) {
    const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), ordinal);
    if (error != std::errc{} || end != name.data() + name.size()) ordinal = -1;
  }
  if (ordinal < 0) return invalid_argument("must be \"cpu\" or \"cuda:N\"");
  if constexpr (built::kCuda) {
    return cuda::open_device(ordinal, options);
  } else {
    return unsupported("this build holds no CUDA backend");
  }
}

}  // namespace

Result<Device> Device::open(std::string_view name, const DeviceOptions& given) {
  const DeviceOptions options = with_environment(given);
  auto state = open_state(name, options);
  if (!state) return Status{state.status().code, fmt::format("device \"{}\": {}", name, state.status().sentence)};
  FINESCALE_TRY(check_forced(options.kernel));
  state->name = name;
  state->forced_kernel = options.kernel;
  Device device;
  device.state_ = std::make_shared<const DeviceState>(std::move(*state));
  return device;
}

const DeviceInfo& Device::info() const { return state_->info; }
const Executor& Device::executor() const { return state_->executor; }
const std::string& Device::name() const { return state_->name; }
const std::string& Device::model() const { return state_->model; }
std::string_view Device::forced_kernel() const { return state_->forced_kernel; }
std::int32_t Device::ordinal() const { return state_->ordinal; }

}  // namespace finescale
