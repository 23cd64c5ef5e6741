// to = cast(fp32(fp32(element * block_scale) * global))
#include "backends/float_environment.h"
#include "backends/reference/conversions.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>

#include <cstdint>

namespace finescale::reference {

Refusal dequantize_supports(const DequantizeProblem& problem, const DeviceInfo&) {
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group)
    return {"scale_128x4_per_group needs a routing, which dequantize has none of"};
  return {};
}

Status dequantize_run(const DequantizeProblem& problem, const Choice&, const Execution&) {
  const FloatEnvironment environment;
  const Matrix& from = problem.from;
  for (std::int64_t b = 0; b < from.batch; ++b) {
    for (std::int64_t r = 0; r < from.rows; ++r) {
      const float g = global_at(from, b, r);
      for (std::int64_t c = 0; c < from.cols; ++c) {
        const float value = dequantized_value(element_at(from, b, r, c), block_scale_at(from, b, r, c), g);
        set_code(problem.to, b, r, c, encode(problem.to.format.element, value));
      }
    }
  }
  return {};
}

}  // namespace finescale::reference
