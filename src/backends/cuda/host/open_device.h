// Opens a GPU: the facts that kernels are chosen by.
#pragma once

#include "backends/device_state.h"

#include <cstdint>

namespace finescale::cuda {

// device_error: no driver, no such GPU. unsupported: a GPU for which this build holds no code.
Result<DeviceState> open_device(std::int32_t ordinal, const DeviceOptions& options);

}  // namespace finescale::cuda
