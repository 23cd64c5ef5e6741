// What a Device holds. Filled once by a backend's open_device(), then constant.
#pragma once

#include <finescale/device.h>

#include <memory>
#include <string>

namespace finescale {

struct DeviceState {
  DeviceInfo info;
  Executor executor;
  std::string name;
  std::string model;
  std::string forced_kernel;
  std::int32_t ordinal = 0;
  std::shared_ptr<void> owned;  // the library's own pool, where the caller injected none
};

}  // namespace finescale
