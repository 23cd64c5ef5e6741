// Owners of what CUDA hands out: a buffer, a stream, an event. No CUDA header, so that the rest of the library can hold them.
#pragma once

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>

namespace finescale::cuda {

// Each belongs to the device `ordinal` and is given back when it goes out of scope.
class Buffer {
 public:
  static Result<Buffer> allocate(std::int32_t ordinal, std::int64_t bytes);
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::int32_t ordinal_ = 0;
};

class Stream {
 public:
  // A stream that does not wait for the default stream.
  static Result<Stream> create(std::int32_t ordinal);
  Stream() = default;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  void* get() const { return stream_; }  // a cudaStream_t

 private:
  void* stream_ = nullptr;
  std::int32_t ordinal_ = 0;
};

class Event {
 public:
  static Result<Event> create(std::int32_t ordinal);
  Event() = default;
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  Status record(void* stream);
  // Milliseconds from `start` to this event; waits for both.
  Result<double> milliseconds_since(const Event& start) const;

 private:
  void* event_ = nullptr;
  std::int32_t ordinal_ = 0;
};

// Both wait until the bytes have arrived.
Status copy_to_device(std::int32_t ordinal, std::byte* to, const std::byte* from, std::int64_t bytes);
Status copy_to_host(std::int32_t ordinal, std::byte* to, const std::byte* from, std::int64_t bytes);
// stream null: everything on the device.
Status synchronize(std::int32_t ordinal, void* stream);

}  // namespace finescale::cuda
