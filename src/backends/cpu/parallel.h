// parallel_for: the one way from a kernel to the executor. Work is cut by shape, so bits do not depend on the threads.
#pragma once

#include "backends/cpu/machine.h"

#include <finescale/device.h>

#include <algorithm>
#include <cstdint>

namespace finescale::cpu {

// Runs body(0 .. tasks - 1) on the executor, each task in the contract's floating-point mode.
template <class Body>
void parallel_for(const Execution& execution, std::int64_t tasks, const Body& body) {
  if (tasks <= 0) return;
  struct Context {
    const Body& body;
    std::int64_t tasks, each;
  };
  // An executor counts in int32; more tasks than that go in runs of neighbours.
  constexpr std::int64_t kMostTasks = std::int64_t{1} << 30;
  Context context{body, tasks, (tasks + kMostTasks - 1) / kMostTasks};
  const auto run = [](void* opaque, std::int32_t index) {
    const IeeeMode mode;
    const Context& all = *static_cast<const Context*>(opaque);
    const std::int64_t end = std::min(all.tasks, (index + 1) * all.each);
    for (std::int64_t task = index * all.each; task < end; ++task) all.body(task);
  };
  if (tasks == 1) return run(&context, 0);
  const Executor& executor = execution.device->executor();
  executor.run(executor.self, static_cast<std::int32_t>((tasks + context.each - 1) / context.each), run, &context);
}

// The same over [0, count) in runs of `grain` neighbours: body(begin, end).
template <class Body>
void parallel_ranges(const Execution& execution, std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_for(execution, (count + grain - 1) / grain, [&](std::int64_t task) { body(task * grain, std::min(count, (task + 1) * grain)); });
}

}  // namespace finescale::cpu
