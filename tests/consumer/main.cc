// Uses the library as a stranger would: public headers only.
#include <finescale/device.h>
#include <finescale/version.h>

#include <cstdio>

int main() {
  const auto device = finescale::Device::open("cpu");
  if (!device) return 1;
  std::printf("finescale %.*s on %s\n", static_cast<int>(finescale::library_version().size()), finescale::library_version().data(),
              device->model().c_str());
  return 0;
}
