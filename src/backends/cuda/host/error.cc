#include "backends/cuda/host/error.h"

#include <fmt/format.h>

namespace finescale::cuda {

Status checked(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());  // reported here: the caller's own next look must not find it again
  std::string sentence = fmt::format("{}: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error));
  return error == cudaErrorMemoryAllocation ? out_of_memory(std::move(sentence)) : device_error(std::move(sentence));
}

CurrentDevice::CurrentDevice(std::int32_t ordinal) {
  int current = -1;
  status_ = checked(cudaGetDevice(&current), "cudaGetDevice");
  if (!status_ || current == ordinal) return;
  status_ = checked(cudaSetDevice(ordinal), "cudaSetDevice");
  if (status_) previous_ = current;
}

// A failure to restore cannot be reported from here: the next CUDA call of the caller meets the same error.
CurrentDevice::~CurrentDevice() {
  if (previous_ >= 0) static_cast<void>(cudaSetDevice(previous_));
}

}  // namespace finescale::cuda
