// Kernel: one row of a table. To choose is to walk the rows from best to the one that takes everything; every refusal
// gives a reason. Choice depends on shapes, formats, layouts, strides, promised alignment and DeviceInfo, never on
// pointers or values.
#pragma once

#include <finescale/device.h>
#include <finescale/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finescale {

// Why a kernel does not take a problem: a static rule and two numbers, both 0 where it is about none. No rule: it takes it.
// Sentences are made by explain() and by errors only.
struct Refusal {
  const char* rule = nullptr;
  std::int64_t got = 0, want = 0;

  constexpr explicit operator bool() const { return rule != nullptr; }
};

// What configure() decided: the workspace that a run needs and a number that the kernel understands.
struct Choice {
  std::int64_t scratch_bytes = 0, sync_bytes = 0;
  std::int32_t config = 0;
};

// How a kernel accumulates (docs/numerics.md). Equal order: equal bits for the same problem row.
struct Accumulation {
  std::int32_t order = 0;           // id of the summation order; 0: not stated
  std::int32_t fraction_bits = 24;  // kept when addends are aligned to the largest
  std::int32_t exact_run = 1;       // products summed exactly before one rounding
  bool truncates = false;           // rounds toward zero: 2^-23 instead of 2^-24 a step
};

// Which devices a row is for. tier 0, or a family of instructions that a self-test must have armed.
struct Target {
  DeviceKind kind = DeviceKind::cpu;
  std::int32_t min_capability = 0, max_capability = 0;  // CUDA; inclusive; 0, 0: any
  std::uint64_t isa = 0;                                // CPU: every bit is needed
  std::uint64_t tier = 0;
};

template <class Problem>
struct Kernel {
  std::string_view name;
  Target target;
  Accumulation (*adds)(const Problem&) = nullptr;                    // null: the op adds nothing up
  Refusal (*supports)(const Problem&, const DeviceInfo&) = nullptr;  // can it; null: everything
  Refusal (*suits)(const Problem&, const DeviceInfo&) = nullptr;     // is it a good choice; null: always
  Choice (*configure)(const Problem&, const DeviceInfo&) = nullptr;  // pure; null: no workspace
  Status (*run)(const Problem&, const Choice&, const Execution&) = nullptr;
};

// The tables of an op, in order; each holds rows best first.
template <class Problem>
using KernelTables = std::span<const std::span<const Kernel<Problem>>>;

template <class Problem>
struct Plan {
  const Kernel<Problem>* kernel = nullptr;
  Choice choice{};
};

// One row's verdict on a problem, as explain() lists it.
struct Explanation {
  std::string_view kernel;
  bool accepted = false;  // supports
  bool taken = false;     // the one that plan() picks
  std::string sentence;   // why refused, or why accepted and not taken
};

constexpr Refusal refuse_target(const Target& target, const DeviceInfo& device) {
  if (target.kind != device.kind) return {"is for another kind of device"};
  if (target.max_capability != 0 && device.capability < target.min_capability) {
    return {"compute capability of the device, 10 major + minor: at least", device.capability, target.min_capability};
  }
  if (target.max_capability != 0 && device.capability > target.max_capability) {
    return {"compute capability of the device, 10 major + minor: at most", device.capability, target.max_capability};
  }
  if ((target.isa & ~device.isa) != 0) return {"needs an instruction set that this CPU lacks or that its level leaves out"};
  if ((target.tier & ~device.armed) != 0) return {"its tier is not armed on this device"};
  return {};
}

template <class Problem>
constexpr Refusal refuse(const Kernel<Problem>& kernel, const Problem& problem, const DeviceInfo& device) {
  if (const Refusal refusal = refuse_target(kernel.target, device)) return refusal;
  return kernel.supports != nullptr ? kernel.supports(problem, device) : Refusal{};
}

// The first row that supports and suits, else the first that supports, else null.
template <class Problem>
constexpr const Kernel<Problem>* choose(KernelTables<Problem> tables, const Problem& problem, const DeviceInfo& device) {
  const Kernel<Problem>* fallback = nullptr;
  for (const auto& table : tables) {
    for (const Kernel<Problem>& kernel : table) {
      if (refuse(kernel, problem, device)) continue;
      if (kernel.suits == nullptr || !kernel.suits(problem, device)) return &kernel;
      if (fallback == nullptr) fallback = &kernel;
    }
  }
  return fallback;
}

template <class Problem>
const Kernel<Problem>* find_kernel(KernelTables<Problem> tables, std::string_view name) {
  for (const auto& table : tables) {
    for (const Kernel<Problem>& kernel : table) {
      if (kernel.name == name) return &kernel;
    }
  }
  return nullptr;
}

}  // namespace finescale
