#include "backends/cpu/open_device.h"

namespace finescale::cpu {
namespace {

void run_serially(void*, std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
  for (std::int32_t index = 0; index < tasks; ++index) task(context, index);
}

}  // namespace

Result<DeviceState> open_device(const DeviceOptions& options) {
  DeviceState state;
  state.executor = options.executor.run != nullptr ? options.executor : Executor{1, nullptr, run_serially};
  state.info.workers = state.executor.workers;
  return state;
}

}  // namespace finescale::cpu
