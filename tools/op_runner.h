// A planned op with its workspace: plan once, run often.
#pragma once

#include "op_operands.h"

#include <finescale/kernel.h>

#include <utility>
#include <vector>

namespace finescale::tools {

template <class Problem>
class OpRunner {
 public:
  // The problem's tags decide; its pointers may change between runs.
  static Result<OpRunner> make(const Problem& problem, const Device& device) {
    const auto made = plan(problem, device);
    FINESCALE_TRY(made);
    OpRunner runner(device, *made);
    auto scratch = DeviceMemory::allocate(device, made->choice.scratch_bytes);
    FINESCALE_TRY(scratch);
    auto sync = DeviceMemory::allocate(device, made->choice.sync_bytes);
    FINESCALE_TRY(sync);
    auto stream = DeviceStream::create(device);
    FINESCALE_TRY(stream);
    const std::vector<std::byte> zeros(static_cast<std::size_t>(made->choice.sync_bytes));
    FINESCALE_TRY(copy_to_device(device, sync->data(), zeros.data(), made->choice.sync_bytes));
    runner.scratch_ = *std::move(scratch);
    runner.sync_ = *std::move(sync);
    runner.stream_ = *std::move(stream);
    return runner;
  }

  const Kernel<Problem>& kernel() const { return *plan_.kernel; }
  Accumulation accumulation(const Problem& problem) const {
    return plan_.kernel->adds != nullptr ? plan_.kernel->adds(problem) : Accumulation{};
  }
  void* stream() const { return stream_.get(); }

  // Enqueues; on "cpu" it is done when this returns.
  Status enqueue(const Problem& problem) const {
    const Workspace workspace{scratch_.data(), scratch_.bytes(), sync_.data(), sync_.bytes()};
    return finescale::run(plan_, problem, {&device_, stream_.get(), workspace});
  }
  Status run_to_end(const Problem& problem) const {
    FINESCALE_TRY(enqueue(problem));
    return synchronize(device_, stream_.get());
  }

 private:
  OpRunner(const Device& device, const Plan<Problem>& plan) : device_(device), plan_(plan) {}

  Device device_;
  Plan<Problem> plan_;
  DeviceMemory scratch_, sync_;
  DeviceStream stream_;
};

// The kernels that take a problem, and why the others do not.
struct KernelChoice {
  std::vector<std::string> names;  // to run, in the order of the tables
  std::vector<Explanation> refused;
};

// wanted_all: every row that supports the problem; else the one that plan() picks.
template <class Problem>
Result<KernelChoice> choose_kernels(const Problem& problem, const Device& device, bool wanted_all) {
  KernelChoice choice;
  const auto made = plan(problem, device);
  FINESCALE_TRY(made);
  if (!wanted_all) {
    choice.names.emplace_back(made->kernel->name);
    return choice;
  }
  for (Explanation& row : explain(problem, device)) {
    if (row.accepted) {
      choice.names.emplace_back(row.kernel);
    } else {
      choice.refused.push_back(std::move(row));
    }
  }
  return choice;
}

}  // namespace finescale::tools
