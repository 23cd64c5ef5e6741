#include "backends/cpu/finish_rows.h"

#include "backends/cpu/finish_values.h"
#include "backends/cpu/output_run.h"
#include "backends/cpu/parallel.h"

#include <algorithm>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kTaskRows = 8;

// Columns of a task: runs of kRunCols, in whole blocks.
std::int64_t task_cols(const MutableMatrix& d) { return round_up(kRunCols, std::max<std::int64_t>(d.format.block_cols, 2)); }

// Calls body(rows begin, rows end, first column, columns) over a grid of tasks.
template <class Body>
void over_tiles(const Execution& execution, const MutableMatrix& d, std::int64_t rows, const Body& body) {
  const std::int64_t cols = task_cols(d), column_tasks = ceil_div(d.cols, cols);
  parallel_for(execution, ceil_div(rows, kTaskRows) * column_tasks, [&](std::int64_t task) {
    const std::int64_t begin = task / column_tasks * kTaskRows, first = task % column_tasks * cols;
    body(begin, std::min(rows, begin + kTaskRows), first, std::min(cols, d.cols - first));
  });
}

}  // namespace

void finish_strip(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, const Execution& execution) {
  const MutableMatrix& d = problem.d;
  over_tiles(execution, d, strip.row_count, [&](std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = begin; i < end; ++i) {
      const StripRow& at = strip.rows[i];
      if (d.format.is_plain()) {
        float values[kRunCols];
        finish_run(leaves, problem, strip, i, first, count, true, values);
        store_run(d, at.d_batch, at.d_row, first, count, values);
      } else if (at.d_row % d.format.block_rows == 0) {  // blocks belong to the task of their first row
        const std::int64_t rows = std::min<std::int64_t>(d.format.block_rows, d.rows - at.d_row);
        quantize_run(d, {at.d_batch, at.d_row, rows, at.d_scale_row}, first, count,
                     [&](std::int64_t r, std::int64_t col, std::int64_t n, float* out) {
                       finish_run(leaves, problem, strip, i + r, col, n, true, out);
                     });
      }
    }
  });
}

void activated_values(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t i, std::int64_t first,
                      std::int64_t count, float* out) {
  finish_run(leaves, problem, strip, i, first, count, false, out);
}

void store_values(const GemmProblem& problem, const float* values, const Execution& execution) {
  const MutableMatrix& d = problem.d;
  over_tiles(execution, d, d.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t count) {
    for (std::int64_t t = begin; t < end; ++t) {
      if (d.format.is_plain()) {
        store_run(d, 0, t, first, count, values + t * d.cols + first);
      } else if (t % d.format.block_rows == 0) {
        const std::int64_t rows = std::min<std::int64_t>(d.format.block_rows, d.rows - t);
        quantize_run(d, {0, t, rows, t}, first, count, [&](std::int64_t r, std::int64_t col, std::int64_t n, float* out) {
          std::copy_n(values + (t + r) * d.cols + col, n, out);
        });
      }
    }
  });
}

}  // namespace finescale::cpu
