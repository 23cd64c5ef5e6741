// Every CUDA call's status goes through here: a device_error that carries the call's name and CUDA's own text.
#pragma once

#include <finescale/status.h>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace finescale::cuda {

// out_of_memory for cudaErrorMemoryAllocation, device_error for every other failure; ok for cudaSuccess.
Status checked(cudaError_t error, const char* call);

// Makes a device current for a scope and gives the caller's back afterwards: no call of the library changes the current
// device of the thread that made it.
class CurrentDevice {
 public:
  explicit CurrentDevice(std::int32_t ordinal);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  const Status& status() const { return status_; }

 private:
  int previous_ = -1;  // -1: nothing to restore
  Status status_;
};

}  // namespace finescale::cuda
