// prepare: weights into the layout that a device's kernels read fastest. Values survive; the caller owns the buffer.
// For every problem of every op at least one kernel reads a prepared matrix, so preparing never makes a call unsupported.
#pragma once

#include <finescale/kernel.h>
#include <finescale/matrix.h>

#include <string_view>

namespace finescale {

struct PrepareProblem {
  Matrix from{};                 // any layout
  MutableMatrix to{};            // of prepared_like(); globals stay outside the buffer
  const char* kernel = nullptr;  // forced; null: the device's, else chosen
};

// The matrix to prepare into: `from`'s tags with the device's preferred layout (or the named one); data is null and
// storage() sizes it; global is from's. unsupported: no prepared layout takes the format.
Result<MutableMatrix> prepared_like(const Matrix& from, const Device& device, std::string_view layout = {});

Result<Plan<PrepareProblem>> plan(const PrepareProblem& problem, const Device& device);
Status run(const Plan<PrepareProblem>& plan, const PrepareProblem& problem, const Execution& execution);
Status prepare(const PrepareProblem& problem, const Execution& execution);
Choice workspace_bound(const PrepareProblem& problem, const Device& device);
std::vector<Explanation> explain(const PrepareProblem& problem, const Device& device);

}  // namespace finescale
