// Every row of an op's tables on one problem: what the sweeps of tests/ops and tests/cuda share. Workspaces are poisoned, and
// `sync` must come back zero.
#pragma once

#include "check/owned_matrix.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "ops/validate.h"
#include "support/placed_matrix.h"

#include <finescale/device.h>
#include <finescale/kernel.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finescale::test {

inline const Device& cpu_device() {
  static const Device device = *Device::open("cpu");
  return device;
}

// A global scale where quantizers of the format make one.
inline GlobalScale usual_global(const Format& format) { return format.global ? GlobalScale::one : GlobalScale::none; }

inline bool is_reference(std::string_view kernel) { return kernel.ends_with("_reference"); }

template <class Problem>
const Kernel<Problem>& reference_kernel() {
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) {
      if (is_reference(kernel.name)) return kernel;
    }
  }
  std::abort();
}

// Configures and runs one row; returns when the device is done.
template <class Problem>
Status run_kernel(const Kernel<Problem>& kernel, const Problem& problem, const Device& device) {
  FINESCALE_TRY(validate(problem));
  const Plan<Problem> plan{&kernel, configure(kernel, with_strides(problem), device.info())};
  const GuardedBuffer scratch(plan.choice.scratch_bytes, 0xFF), sync(plan.choice.sync_bytes, 0);
  auto placed_scratch = PlacedBuffer::place(device, scratch);
  FINESCALE_TRY(placed_scratch);
  auto placed_sync = PlacedBuffer::place(device, sync);
  FINESCALE_TRY(placed_sync);
  Execution execution{.device = &device};
  execution.workspace = {placed_scratch->data(), scratch.bytes(), placed_sync->data(), sync.bytes()};
  FINESCALE_TRY(run(plan, problem, execution));
  FINESCALE_TRY(synchronize(device));
  FINESCALE_TRY(placed_scratch->fetch(device, scratch));
  FINESCALE_TRY(placed_sync->fetch(device, sync));
  if (!scratch.guards_intact() || !sync.guards_intact()) return internal_error("the kernel wrote outside its workspace");
  if (std::any_of(sync.data(), sync.data() + sync.bytes(), [](std::byte byte) { return byte != std::byte{0}; })) {
    return internal_error("the kernel did not leave workspace.sync zero");
  }
  return {};
}

// How many problems each row took, and why it refused the others.
class SweepReport {
 public:
  void took(std::string_view kernel) { ++rows_[std::string(kernel)].taken; }
  void skipped(std::string_view kernel, const Refusal& refusal) {
    Row& row = rows_[std::string(kernel)];
    ++row.skipped;
    row.reason = refusal_sentence(kernel, refusal);
  }
  // Prints the rows. Unless the sweep is of a few formats, a row for this device that took nothing was not tested.
  void finish(bool every_row = true) const {
    for (const auto& [name, row] : rows_) {
      std::cout << "  " << name << ": took " << row.taken << ", skipped " << row.skipped
                << (row.skipped != 0 ? ", last: " + row.reason : "") << "\n";
      EXPECT_TRUE(row.taken > 0 || !every_row) << name << " took no problem of the sweep: " << row.reason;
    }
  }

 private:
  struct Row {
    int taken = 0, skipped = 0;
    std::string reason;
  };
  std::map<std::string, Row> rows_;
};

// Calls check(kernel) for each row meant for this device that takes the problem. Pointers are not looked at.
template <class Problem, class Check>
void for_each_kernel(const Problem& problem, const Device& device, SweepReport& report, const Check& check) {
  const Problem whole = with_strides(problem);
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) {
      if (refuse_target(kernel.target, device.info())) continue;
      if (const Refusal refusal = refuse(kernel, whole, device.info())) {
        report.skipped(kernel.name, refusal);
        continue;
      }
      report.took(kernel.name);
      check(kernel);
    }
  }
}

inline testing::AssertionResult same_bytes(const char* what, const GuardedBuffer& expected, const GuardedBuffer& actual) {
  for (std::int64_t i = 0; i < expected.bytes(); ++i) {
    if (expected.data()[i] == actual.data()[i]) continue;
    return testing::AssertionFailure() << what << " byte " << i << " of " << expected.bytes() << ": expected " << std::hex
                                       << std::to_integer<int>(expected.data()[i]) << ", got " << std::to_integer<int>(actual.data()[i]);
  }
  if (!actual.guards_intact()) return testing::AssertionFailure() << what << ": written outside the buffer";
  return testing::AssertionSuccess();
}

// Codes, block scales and globals, padding and gaps included.
inline void expect_same(const OwnedMatrix& expected, const OwnedMatrix& actual) {
  EXPECT_TRUE(same_bytes("data", expected.data(), actual.data()));
  EXPECT_TRUE(same_bytes("scales", expected.scales(), actual.scales()));
  EXPECT_TRUE(same_bytes("global", expected.globals(), actual.globals()));
}

}  // namespace finescale::test
