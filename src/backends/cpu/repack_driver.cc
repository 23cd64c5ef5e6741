// The same codes and block scales in another layout.
#include "backends/cpu/conversion_drivers.h"

#include "backends/cpu/output_run.h"
#include "backends/cpu/parallel.h"
#include "backends/padding.h"

#include <finescale/access.h>

#include <cstring>

namespace finescale::cpu {
namespace {

bool is_packed_row(const Matrix& matrix) { return !is_prepared(matrix.codes) && matrix.col_stride == 1; }

// Whole bytes where both rows are packed; of 4-bit codes the halves of a byte are exchanged between the two nibble orders.
void repack_codes(const RepackProblem& problem, std::int64_t batch, std::int64_t row) {
  const Matrix& from = problem.from;
  const MutableMatrix& to = problem.to;
  const int width = bits(to.format.element);
  std::int64_t done = 0;
  if (to.cols != 0 && is_packed_row(from) && is_packed_row(to)) {
    const auto source = code_place(from, batch, row, 0);
    const auto target = code_place(to, batch, row, 0);
    const std::byte* in = source.base + source.index * width / 8;
    std::byte* out = target.base + target.index * width / 8;
    const std::int64_t bytes = to.cols * width / 8;
    if (width != 4 || from.codes == to.codes) {
      std::memcpy(out, in, static_cast<std::size_t>(bytes));
    } else {
      for (std::int64_t i = 0; i < bytes; ++i) out[i] = in[i] << 4 | in[i] >> 4;
    }
    done = bytes * 8 / width;
  }
  for (std::int64_t col = done; col < to.cols; ++col) set_code(to, batch, row, col, code_at(from, batch, row, col));
  zero_unused_nibbles(to, {batch, row, 1, row});
}

void repack_scales(const RepackProblem& problem, std::int64_t batch, std::int64_t row) {
  const MutableMatrix& to = problem.to;
  if (!to.format.has_scales() || row % to.format.block_rows != 0) return;
  for (std::int64_t col = 0; col < to.cols; col += to.format.block_cols) {
    set_scale_code(to, batch, row, col, scale_code_at(problem.from, batch, row, col));
  }
}

}  // namespace

Refusal repack_supports(const RepackProblem& problem, const DeviceInfo&) {
  if (problem.from.scale_layout == ScaleLayout::scale_128x4_per_group || problem.to.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return {"scale_128x4_per_group needs a routing, which repack has none of"};
  }
  return {};
}

Status repack_run(const RepackProblem& problem, const Choice&, const Execution& execution) {
  const MutableMatrix& to = problem.to;
  zero_scale_tiles(to, to.scale_rows());
  parallel_ranges(execution, to.batch * to.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      repack_codes(problem, i / to.rows, i % to.rows);
      repack_scales(problem, i / to.rows, i % to.rows);
    }
  });
  return {};
}

}  // namespace finescale::cpu
