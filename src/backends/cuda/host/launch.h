// Launching a kernel: one function that checks the status, and the arithmetic of one-dimensional grids.
#pragma once

#include "backends/cuda/host/error.h"

#include <finescale/device.h>
#include <finescale/formats/bits.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace finescale::cuda {

// The caller's stream. The device must be current when something is enqueued on it.
inline cudaStream_t stream_of(const Execution& execution) { return static_cast<cudaStream_t>(execution.stream); }

template <class... Parameters, class... Arguments>
Status launch(const char* name, void (*kernel)(Parameters...), dim3 grid, int threads, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  return checked(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

// CTAs for a grid-stride loop over `items`: enough to fill any chip, few enough for any grid.
inline dim3 grid_for(std::int64_t items, int threads) {
  constexpr std::int64_t kMostCtas = 1 << 16;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, threads), 1, kMostCtas)));
}

}  // namespace finescale::cuda
