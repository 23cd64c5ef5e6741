#include "backends/cuda/host/open_device.h"

namespace finescale::cuda {

Result<DeviceState> open_device(std::int32_t, const DeviceOptions&) { return device_error("no GPU"); }

}  // namespace finescale::cuda
