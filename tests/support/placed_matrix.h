// A guarded host matrix and, on a GPU, its copy there: what a test hands to a kernel and looks at afterwards. Guard zones travel
// along, so that a stray write on the device shows on the host.
#pragma once

#include "check/owned_matrix.h"
#include "ops/device_memory.h"

#include <finescale/device.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstdint>
#include <utility>

namespace finescale::test {

// A GuardedBuffer on a device. On "cpu" it is the host buffer itself.
class PlacedBuffer {
 public:
  static Result<PlacedBuffer> place(const Device& device, const GuardedBuffer& host) {
    PlacedBuffer placed;
    if (device.info().kind == DeviceKind::cpu || host.bytes() == 0) {
      placed.data_ = host.data();
      return placed;
    }
    auto memory = DeviceMemory::allocate(device, host.region_bytes());
    FINESCALE_TRY(memory);
    FINESCALE_TRY(copy_to_device(device, memory->data(), host.region(), host.region_bytes()));
    placed.data_ = memory->data() + (host.data() - host.region());
    placed.memory_ = std::move(*memory);
    return placed;
  }

  Status fetch(const Device& device, const GuardedBuffer& host) const {
    if (memory_.bytes() == 0) return {};
    return copy_to_host(device, host.region(), memory_.data(), host.region_bytes());
  }

  std::byte* data() const { return data_; }

 private:
  DeviceMemory memory_;
  std::byte* data_ = nullptr;
};

class PlacedMatrix {
 public:
  PlacedMatrix() = default;
  static Result<PlacedMatrix> place(const Device& device, OwnedMatrix host) {
    PlacedMatrix placed;
    placed.host_ = std::move(host);
    auto data = PlacedBuffer::place(device, placed.host_.data());
    FINESCALE_TRY(data);
    auto scales = PlacedBuffer::place(device, placed.host_.scales());
    FINESCALE_TRY(scales);
    auto globals = PlacedBuffer::place(device, placed.host_.globals());
    FINESCALE_TRY(globals);
    placed.data_ = std::move(*data);
    placed.scales_ = std::move(*scales);
    placed.globals_ = std::move(*globals);
    return placed;
  }

  // The matrix with pointers on the device.
  MutableMatrix view() const {
    MutableMatrix matrix = host_.view();
    matrix.data = data_.data();
    matrix.scales = scales_.data();
    matrix.global = reinterpret_cast<float*>(globals_.data());
    return matrix;
  }

  // Brings the device's bytes into host().
  Status fetch(const Device& device) const {
    FINESCALE_TRY(data_.fetch(device, host_.data()));
    FINESCALE_TRY(scales_.fetch(device, host_.scales()));
    return globals_.fetch(device, host_.globals());
  }

  const OwnedMatrix& host() const { return host_; }
  // The host matrix, taken out.
  OwnedMatrix release() && { return std::move(host_); }

 private:
  OwnedMatrix host_;
  PlacedBuffer data_, scales_, globals_;
};

}  // namespace finescale::test
