// repack: the same codes and block scales in another layout (nibble order, scale tiles, strides). No value changes.
#pragma once

#include <finescale/kernel.h>
#include <finescale/matrix.h>

namespace finescale {

struct RepackProblem {
  Matrix from{};       // any layout, prepared ones included
  MutableMatrix to{};  // the same format and shape, any layout but prepared ones; padding is written as zeros; global is not touched
  const char* kernel = nullptr;  // forced; null: the device's, else chosen
};

Result<Plan<RepackProblem>> plan(const RepackProblem& problem, const Device& device);
Status run(const Plan<RepackProblem>& plan, const RepackProblem& problem, const Execution& execution);
Status repack(const RepackProblem& problem, const Execution& execution);
Choice workspace_bound(const RepackProblem& problem, const Device& device);
std::vector<Explanation> explain(const RepackProblem& problem, const Device& device);

}  // namespace finescale
