#include "backends/cuda/host/open_device.h"

#include "backends/cuda/host/architectures.h"
#include "backends/cuda/host/error.h"
#include "finescale_built.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace finescale::cuda {
namespace {

Status read_attribute(std::int32_t& value, cudaDeviceAttr attribute, std::int32_t ordinal) {
  int read = 0;
  FINESCALE_TRY(checked(cudaDeviceGetAttribute(&read, attribute, ordinal), "cudaDeviceGetAttribute"));
  value = read;
  return {};
}

Status read_facts(DeviceState& state, std::int32_t ordinal) {
  std::int32_t major = 0, minor = 0;
  FINESCALE_TRY(read_attribute(major, cudaDevAttrComputeCapabilityMajor, ordinal));
  FINESCALE_TRY(read_attribute(minor, cudaDevAttrComputeCapabilityMinor, ordinal));
  FINESCALE_TRY(read_attribute(state.info.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal));
  FINESCALE_TRY(read_attribute(state.info.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
  state.info.kind = DeviceKind::cuda;
  state.info.capability = 10 * major + minor;
  cudaDeviceProp properties{};
  FINESCALE_TRY(checked(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"));
  state.model = properties.name;
  state.ordinal = ordinal;
  return {};
}

}  // namespace

Result<DeviceState> open_device(std::int32_t ordinal, const DeviceOptions&) {
  int count = 0;
  FINESCALE_TRY(checked(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  if (ordinal >= count) return device_error(fmt::format("device = \"cuda:{}\": this machine has {} GPUs", ordinal, count));
  DeviceState state;
  FINESCALE_TRY(read_facts(state, ordinal));
  if (!any_architecture_runs_on(built::kCudaArchitectures, state.info.capability)) {
    return unsupported(fmt::format("device = \"cuda:{}\": {} has compute capability {}.{}, this build holds code for {} only", ordinal,
                                   state.model, state.info.capability / 10, state.info.capability % 10, built::kCudaArchitectures));
  }
  return state;
}

}  // namespace finescale::cuda
