// The device side of device_formats_test: out[i] = evaluate(row, i * step), one thread a number.
#include "formats/device_formats.h"

namespace finescale::test {
namespace {

__global__ void evaluate_each(NumericCase row, std::uint32_t count, std::uint32_t step, std::uint32_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = evaluate(row, i * step);
}

}  // namespace

std::vector<std::uint32_t> evaluate_on_device(const NumericCase& row, std::uint32_t count, std::uint32_t step) {
  std::uint32_t* device = nullptr;
  if (cudaMalloc(&device, count * sizeof(std::uint32_t)) != cudaSuccess) return {};
  evaluate_each<<<(count + 255) / 256, 256>>>(row, count, step, device);
  std::vector<std::uint32_t> host(count);
  const bool launched = cudaGetLastError() == cudaSuccess;
  const bool copied = cudaMemcpy(host.data(), device, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost) == cudaSuccess;
  const bool freed = cudaFree(device) == cudaSuccess;
  return launched && copied && freed ? host : std::vector<std::uint32_t>{};
}

}  // namespace finescale::test
