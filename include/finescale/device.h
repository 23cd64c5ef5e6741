// Device: the one home of state (chip facts, executor, defaults from the environment). Execution: how one call runs.
#pragma once

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace finescale {

// A parallel-for that the caller may inject: runs task(context, 0 .. tasks - 1), in any order, even one after another;
// no task waits for another. `run` returns when all are done.
struct Executor {
  std::int32_t workers = 1;
  void* self = nullptr;
  void (*run)(void* self, std::int32_t tasks, void (*task)(void* context, std::int32_t index), void* context) = nullptr;
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

// CPU instruction sets, as bits of DeviceInfo::isa; each is one that a kernel may be compiled for.
enum class Isa : std::uint64_t {
  none = 0,
  avx2 = 1u << 0,         // AVX2, FMA, F16C
  avx512 = 1u << 1,       // F, BW, VL, DQ
  avx512_vnni = 1u << 2,  // with VBMI
  avx512_bf16 = 1u << 3,
  avx512_fp16 = 1u << 4,
  amx_bf16 = 1u << 5,
  amx_int8 = 1u << 6,
  neon = 1u << 7,
};

// Plain facts about a chip: kernels are chosen from these alone, so that choice is tested with chips we do not own.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  std::int32_t capability = 0;                         // CUDA: 10 * major + minor
  std::int32_t multiprocessors = 0, shared_bytes = 0;  // CUDA: SMs; most shared memory a CTA may ask for
  std::int32_t workers = 1;                            // CPU: tasks that run at once
  std::uint64_t isa = 0;                               // CPU: bits of Isa
  std::uint64_t armed = 0;                             // tiers whose self-test passed on this chip, driver and build
};

// Empty: from the environment, read when the device is opened.
struct DeviceOptions {
  Executor executor{};           // CPU; none: the library's own fork-join pool
  std::int32_t threads = 0;      // CPU, workers of that pool; 0: every CPU of the process
  std::string_view cpu_level{};  // FINESCALE_CPU_LEVEL: portable, avx2, ...: no kernel above it is taken
  std::string_view kernel{};     // FINESCALE_KERNEL: forced for the op that its name begins with
};

struct DeviceState;

class Device {
 public:
  // name: "cpu" or "cuda:N". unsupported where the backend is not built, device_error where the GPU cannot be opened.
  static Result<Device> open(std::string_view name, const DeviceOptions& options = {});

  const DeviceInfo& info() const;
  const Executor& executor() const;
  const std::string& name() const;         // "cpu", "cuda:0"
  const std::string& model() const;        // what the chip calls itself
  std::string_view forced_kernel() const;  // of the options; empty: none
  std::int32_t ordinal() const;            // CUDA device number

 private:
  std::shared_ptr<const DeviceState> state_;
};

// Memory that a call may use. scratch: any content before and after. sync: zeroed once by the caller, left zero by every
// kernel. Both 256-byte aligned, on the device, one workspace per stream. The sizes are a plan's choice.
struct Workspace {
  std::byte* scratch = nullptr;
  std::int64_t scratch_bytes = 0;
  std::byte* sync = nullptr;
  std::int64_t sync_bytes = 0;
};

struct Execution {
  const Device* device = nullptr;
  void* stream = nullptr;  // CUDA: a cudaStream_t
  Workspace workspace{};
  bool weights_settled = false;  // nothing in flight writes B: a dependent launch may read it early
};

}  // namespace finescale
