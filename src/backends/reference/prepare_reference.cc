// Codes and block scales into a prepared layout, through its map. What belongs to no element is zero.
#include "backends/reference/conversions.h"

#include <finescale/access.h>

#include <cstdint>
#include <cstring>

namespace finescale::reference {

Refusal prepare_supports(const PrepareProblem& problem, const DeviceInfo&) {
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group)
    return {"scale_128x4_per_group needs a routing, which prepare has none of"};
  return {};
}

Status prepare_run(const PrepareProblem& problem, const Choice&, const Execution&) {
  const Matrix& from = problem.from;
  const MutableMatrix& to = problem.to;
  const std::int64_t batches = to.batch_stride == 0 && to.batch != 0 ? 1 : to.batch;
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::int64_t bytes = prepared_bytes(to);
    if (bytes != 0) std::memset(prepared_batch(to, b), 0, static_cast<std::size_t>(bytes));
    for (std::int64_t r = 0; r < to.rows; ++r) {
      for (std::int64_t c = 0; c < to.cols; ++c) set_code(to, b, r, c, code_at(from, b, r, c));
      if (!to.format.has_scales()) continue;
      // A block of several rows repeats its scale for each row.
      for (std::int64_t c = 0; c < to.cols; c += to.format.block_cols) set_scale_code(to, b, r, c, scale_code_at(from, b, r, c));
    }
  }
  return {};
}

}  // namespace finescale::reference
