#include "checkpoint/weight_error.h"

#include "checkpoint/host_operand.h"

#include <finescale/access.h>
#include <finescale/dequantize.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace finescale::checkpoint {
namespace {

struct Squares {
  double error = 0, signal = 0;
  double ratio() const { return error == 0 ? 0 : std::sqrt(error / signal); }
};

}  // namespace

// By slabs of rows, so that the FP32 copy of a large weight never exists.
Result<WeightError> weight_error(const Matrix& plain_packed, const Matrix& quantized, const Device& device) {
  const Matrix plain = with_strides(plain_packed);
  const Format format = quantized.format;
  const std::int64_t slab_rows =
      round_up(std::clamp<std::int64_t>((std::int64_t{1} << 20) / std::max<std::int64_t>(plain.cols, 1), 1, 1024), format.block_rows);
  auto values = HostBuffer::make(slab_rows * plain.cols * static_cast<std::int64_t>(sizeof(float)));
  FINESCALE_TRY(values);
  WeightError worst;
  Squares total;
  for (std::int64_t first = 0; first < plain.rows; first += slab_rows) {
    const std::int64_t rows = std::min(slab_rows, plain.rows - first);
    DequantizeProblem problem;
    problem.from = row_slice(quantized, first, rows);
    problem.to = {.format = kF32, .rows = rows, .cols = plain.cols, .data = values->data()};
    FINESCALE_TRY(run_on_host(problem, device));
    std::vector<Squares> blocks(static_cast<std::size_t>(ceil_div(rows, format.block_rows) * quantized.scale_cols()));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < plain.cols; ++col) {
        const float x = element_at(plain, 0, first + row, col);
        const float y = bits_float(load_code(values->data(), row * plain.cols + col, 32, false));
        if (!is_finite(x) || !is_finite(y)) continue;
        Squares& block = blocks[static_cast<std::size_t>(row / format.block_rows * quantized.scale_cols() + col / format.block_cols)];
        block.error += (static_cast<double>(x) - y) * (static_cast<double>(x) - y);
        block.signal += static_cast<double>(x) * x;
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      total.error += blocks[i].error;
      total.signal += blocks[i].signal;
      if (blocks[i].ratio() <= worst.worst_block) continue;
      const auto index = static_cast<std::int64_t>(i);
      worst.worst_block = blocks[i].ratio();
      worst.worst_row = first + index / quantized.scale_cols() * format.block_rows;
      worst.worst_col = index % quantized.scale_cols() * format.block_cols;
    }
  }
  worst.relative_rms = total.ratio();
  return worst;
}

}  // namespace finescale::checkpoint
