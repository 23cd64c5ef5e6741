#include "backends/cpu/open_device.h"

#include "backends/cpu/cpu_info.h"
#include "backends/cpu/executor.h"

#include <fmt/format.h>

namespace finescale::cpu {
namespace {

constexpr std::int32_t kMostThreads = 4096;

}  // namespace

Result<DeviceState> open_device(const DeviceOptions& options) {
  const auto mask = level_mask(options.cpu_level);
  FINESCALE_TRY(mask);
  if (options.threads < 0 || options.threads > kMostThreads) {
    return invalid_argument(fmt::format("threads = {}: must be 0 (every CPU of the process) to {}", options.threads, kMostThreads));
  }
  DeviceState state;
  state.model = cpu_model();
  state.info.kind = DeviceKind::cpu;
  state.info.isa = detected_isa() & *mask;
  state.executor = options.executor;
  if (state.executor.run == nullptr) {
    auto pool = std::make_shared<ForkJoinPool>(options.threads > 0 ? options.threads : cpus_of_process());
    state.executor = pool->executor();
    state.owned = std::move(pool);
  }
  state.info.workers = state.executor.workers;
  return state;
}

}  // namespace finescale::cpu
