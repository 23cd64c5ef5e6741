#include "backends/cuda/host/memory.h"

#include "backends/cuda/host/error.h"

#include <algorithm>
#include <utility>

namespace finescale::cuda {
namespace {

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

Status copy(std::int32_t ordinal, std::byte* to, const std::byte* from, std::int64_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return {};
  const CurrentDevice device(ordinal);
  FINESCALE_TRY(device.status());
  return checked(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), kind), "cudaMemcpy");
}

}  // namespace

Result<Buffer> Buffer::allocate(std::int32_t ordinal, std::int64_t bytes) {
  const CurrentDevice device(ordinal);
  FINESCALE_TRY(device.status());
  void* data = nullptr;
  FINESCALE_TRY(checked(cudaMalloc(&data, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))), "cudaMalloc"));
  Buffer buffer;
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.ordinal_ = ordinal;
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), ordinal_(other.ordinal_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(ordinal_, other.ordinal_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  const CurrentDevice device(ordinal_);
  static_cast<void>(cudaFree(data_));
}

Result<Stream> Stream::create(std::int32_t ordinal) {
  const CurrentDevice device(ordinal);
  FINESCALE_TRY(device.status());
  cudaStream_t made = nullptr;
  FINESCALE_TRY(checked(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  Stream stream;
  stream.stream_ = made;
  stream.ordinal_ = ordinal;
  return stream;
}

Stream::Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)), ordinal_(other.ordinal_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(ordinal_, other.ordinal_);
  return *this;
}

Stream::~Stream() {
  if (stream_ == nullptr) return;
  const CurrentDevice device(ordinal_);
  static_cast<void>(cudaStreamDestroy(as_stream(stream_)));
}

Result<Event> Event::create(std::int32_t ordinal) {
  const CurrentDevice device(ordinal);
  FINESCALE_TRY(device.status());
  cudaEvent_t made = nullptr;
  FINESCALE_TRY(checked(cudaEventCreate(&made), "cudaEventCreate"));
  Event event;
  event.event_ = made;
  event.ordinal_ = ordinal;
  return event;
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)), ordinal_(other.ordinal_) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(event_, other.event_);
  std::swap(ordinal_, other.ordinal_);
  return *this;
}

Event::~Event() {
  if (event_ == nullptr) return;
  const CurrentDevice device(ordinal_);
  static_cast<void>(cudaEventDestroy(as_event(event_)));
}

Status Event::record(void* stream) {
  const CurrentDevice device(ordinal_);
  FINESCALE_TRY(device.status());
  return checked(cudaEventRecord(as_event(event_), as_stream(stream)), "cudaEventRecord");
}

Result<double> Event::milliseconds_since(const Event& start) const {
  const CurrentDevice device(ordinal_);
  FINESCALE_TRY(device.status());
  FINESCALE_TRY(checked(cudaEventSynchronize(as_event(event_)), "cudaEventSynchronize"));
  float milliseconds = 0;
  FINESCALE_TRY(checked(cudaEventElapsedTime(&milliseconds, as_event(start.event_), as_event(event_)), "cudaEventElapsedTime"));
  return static_cast<double>(milliseconds);
}

Status copy_to_device(std::int32_t ordinal, std::byte* to, const std::byte* from, std::int64_t bytes) {
  return copy(ordinal, to, from, bytes, cudaMemcpyHostToDevice);
}

Status copy_to_host(std::int32_t ordinal, std::byte* to, const std::byte* from, std::int64_t bytes) {
  return copy(ordinal, to, from, bytes, cudaMemcpyDeviceToHost);
}

Status synchronize(std::int32_t ordinal, void* stream) {
  const CurrentDevice device(ordinal);
  FINESCALE_TRY(device.status());
  if (stream == nullptr) return checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return checked(cudaStreamSynchronize(as_stream(stream)), "cudaStreamSynchronize");
}

}  // namespace finescale::cuda
