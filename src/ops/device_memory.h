// Memory on any device, for tests, benchmarks and the command line: the ops themselves never allocate, copy or wait.
// On "cpu" it is host memory. No CUDA header is needed to use it.
#pragma once

#include <finescale/device.h>
#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace finescale {

// 256-byte aligned bytes on a device, given back when it goes out of scope.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> allocate(const Device& device, std::int64_t bytes);

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// A stream of its own, which waits for no other; what Execution::stream takes. Null on "cpu".
class DeviceStream {
 public:
  DeviceStream() = default;
  static Result<DeviceStream> create(const Device& device);

  void* get() const { return stream_; }

 private:
  std::shared_ptr<void> owner_;
  void* stream_ = nullptr;
};

// Time between two points of a stream; on "cpu" between the two calls.
class DeviceTimer {
 public:
  static Result<DeviceTimer> create(const Device& device);

  Status start(void* stream);
  // Waits for the work in between.
  Result<double> milliseconds(void* stream);

 private:
  std::shared_ptr<void> owner_;
  std::int64_t host_start_ns_ = 0;
};

// Bytes between host and device; both return when the bytes have arrived.
Status copy_to_device(const Device& device, std::byte* to, const std::byte* from, std::int64_t bytes);
Status copy_to_host(const Device& device, std::byte* to, const std::byte* from, std::int64_t bytes);

// Waits for the stream; null: for everything on the device. Reports failures of work enqueued before.
Status synchronize(const Device& device, void* stream = nullptr);

}  // namespace finescale
