#include "ops/device_memory.h"

#include "backends/cuda/host/memory.h"
#include "finescale_built.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace finescale {
namespace {

constexpr std::align_val_t kAlignment{256};

bool on_gpu(const Device& device) { return built::kCuda && device.info().kind == DeviceKind::cuda; }

Status copy_on_host(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes != 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  return {};
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<DeviceMemory> DeviceMemory::allocate(const Device& device, std::int64_t bytes) {
  DeviceMemory memory;
  memory.bytes_ = bytes;
  if constexpr (built::kCuda) {
    if (on_gpu(device)) {
      auto buffer = cuda::Buffer::allocate(device.ordinal(), bytes);
      FINESCALE_TRY(buffer);
      auto owner = std::make_shared<cuda::Buffer>(*std::move(buffer));
      memory.data_ = owner->data();
      memory.owner_ = std::move(owner);
      return memory;
    }
  }
  void* data = ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), kAlignment, std::nothrow);
  if (data == nullptr) return out_of_memory("DeviceMemory::allocate: the host has no memory left");
  memory.owner_ = std::shared_ptr<void>(data, [](void* owned) { ::operator delete(owned, kAlignment); });
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

Result<DeviceStream> DeviceStream::create(const Device& device) {
  DeviceStream made;
  if constexpr (built::kCuda) {
    if (on_gpu(device)) {
      auto stream = cuda::Stream::create(device.ordinal());
      FINESCALE_TRY(stream);
      auto owner = std::make_shared<cuda::Stream>(*std::move(stream));
      made.stream_ = owner->get();
      made.owner_ = std::move(owner);
    }
  }
  return made;
}

Result<DeviceTimer> DeviceTimer::create(const Device& device) {
  DeviceTimer timer;
  if constexpr (built::kCuda) {
    if (on_gpu(device)) {
      auto first = cuda::Event::create(device.ordinal());
      FINESCALE_TRY(first);
      auto last = cuda::Event::create(device.ordinal());
      FINESCALE_TRY(last);
      timer.owner_ = std::make_shared<std::pair<cuda::Event, cuda::Event>>(*std::move(first), *std::move(last));
    }
  }
  return timer;
}

Status DeviceTimer::start(void* stream) {
  if constexpr (built::kCuda) {
    if (owner_ != nullptr) return static_cast<std::pair<cuda::Event, cuda::Event>*>(owner_.get())->first.record(stream);
  }
  host_start_ns_ = now_ns();
  return {};
}

Result<double> DeviceTimer::milliseconds(void* stream) {
  if constexpr (built::kCuda) {
    if (owner_ != nullptr) {
      auto& events = *static_cast<std::pair<cuda::Event, cuda::Event>*>(owner_.get());
      FINESCALE_TRY(events.second.record(stream));
      return events.second.milliseconds_since(events.first);
    }
  }
  return static_cast<double>(now_ns() - host_start_ns_) * 1e-6;
}

Status copy_to_device(const Device& device, std::byte* to, const std::byte* from, std::int64_t bytes) {
  if constexpr (built::kCuda) {
    if (on_gpu(device)) return cuda::copy_to_device(device.ordinal(), to, from, bytes);
  }
  return copy_on_host(to, from, bytes);
}

Status copy_to_host(const Device& device, std::byte* to, const std::byte* from, std::int64_t bytes) {
  if constexpr (built::kCuda) {
    if (on_gpu(device)) return cuda::copy_to_host(device.ordinal(), to, from, bytes);
  }
  return copy_on_host(to, from, bytes);
}

Status synchronize(const Device& device, void* stream) {
  if constexpr (built::kCuda) {
    if (on_gpu(device)) return cuda::synchronize(device.ordinal(), stream);
  }
  return {};
}

}  // namespace finescale
