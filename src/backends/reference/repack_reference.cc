// The same codes and block scales in another layout: each read through one map and written through the other.
#include "backends/padding.h"
#include "backends/reference/conversions.h"

#include <finescale/access.h>

#include <cstdint>

namespace finescale::reference {

Refusal repack_supports(const RepackProblem& problem, const DeviceInfo&) {
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group || problem.to.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return {"scale_128x4_per_group needs a routing, which repack has none of"};
  }
  return {};
}

Status repack_run(const RepackProblem& problem, const Choice&, const Execution&) {
  const Matrix& from = problem.from;
  const MutableMatrix& to = problem.to;
  zero_scale_tiles(to, to.scale_rows());
  for (std::int64_t b = 0; b < to.batch; ++b) {
    for (std::int64_t r = 0; r < to.rows; ++r) {
      for (std::int64_t c = 0; c < to.cols; ++c) set_code(to, b, r, c, code_at(from, b, r, c));
      zero_unused_nibble(to, b, r);
    }
    if (!to.format.has_scales()) continue;
    for (std::int64_t r = 0; r < to.rows; r += to.format.block_rows) {
      for (std::int64_t c = 0; c < to.cols; c += to.format.block_cols) set_scale_code(to, b, r, c, scale_code_at(from, b, r, c));
    }
  }
  return {};
}

}  // namespace finescale::reference
