// to = cast(fp32(fp32(element * block_scale) * global))      any block format, any layout, to f32, f16 or bf16
//
// A thread an element, every operand through its maps.
#include "backends/cuda/device/grid.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>

namespace finescale::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) dequantize_elements(const __grid_constant__ DequantizeProblem problem, std::int64_t items) {
  const Matrix& from = problem.from;
#pragma unroll 1
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const Position at = position_of(item, from.rows, from.cols);
    const float value = dequantized_value(element_at(from, at.batch, at.row, at.col), block_scale_at(from, at.batch, at.row, at.col),
                                          global_at(from, at.batch, at.row));
    set_code(problem.to, at.batch, at.row, at.col, encode(problem.to.format.element, value));
  }
}

}  // namespace

Status dequantize_generic(const DequantizeProblem& problem, const Choice&, const Execution& execution) {
  const std::int64_t items = problem.from.batch * problem.from.rows * problem.from.cols;
  if (items == 0) return {};
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  return launch("dequantize_any_any_generic", dequantize_elements, grid_for(items, kThreads), kThreads, stream_of(execution), problem,
                items);
}

}  // namespace finescale::cuda
