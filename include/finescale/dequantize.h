// dequantize: a block format back to f32, f16 or bf16.
//
//   to = cast(fp32(fp32(element * block_scale) * global))   the same bits on every backend
#pragma once

#include <finescale/kernel.h>
#include <finescale/matrix.h>

namespace finescale {

struct DequantizeProblem {
  Matrix from{};                 // any block format, any layout, prepared ones included
  MutableMatrix to{};            // f32, f16 or bf16, any strides
  const char* kernel = nullptr;  // forced; null: the device's, else chosen
};

Result<Plan<DequantizeProblem>> plan(const DequantizeProblem& problem, const Device& device);
Status run(const Plan<DequantizeProblem>& plan, const DequantizeProblem& problem, const Execution& execution);
Status dequantize(const DequantizeProblem& problem, const Execution& execution);
Choice workspace_bound(const DequantizeProblem& problem, const Device& device);
std::vector<Explanation> explain(const DequantizeProblem& problem, const Device& device);

}  // namespace finescale
