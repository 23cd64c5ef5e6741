// Opens the CPU: what it can do, and the executor that its ops run on.
#pragma once

#include "backends/device_state.h"

namespace finescale::cpu {

// invalid_argument: an unknown cpu_level, a negative number of threads.
Result<DeviceState> open_device(const DeviceOptions& options);

}  // namespace finescale::cpu
