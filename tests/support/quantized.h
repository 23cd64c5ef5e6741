// A few numbers, quantized on the CPU: what the tests of single values start from.
#pragma once

#include "check/owned_matrix.h"
#include "support/run_kernels.h"

#include <finescale/access.h>
#include <finescale/dequantize.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/quantize.h>

#include <cstdint>
#include <vector>

namespace finescale::test {

struct QuantizeOptions {
  Recipe recipe{};
  GlobalScale global = GlobalScale::none;
  float given = 0;  // not 0: every global scale
  ScaleLayout scales = ScaleLayout::linear;
  Format from = kF32;
};

struct Quantized {
  OwnedMatrix matrix;

  Matrix view() const { return with_strides(Matrix(matrix.view())); }
  std::uint32_t code(std::int64_t row, std::int64_t col) const { return code_at(view(), 0, row, col); }
  std::uint32_t scale(std::int64_t row, std::int64_t col) const { return scale_code_at(view(), 0, row, col); }
  float global(std::int64_t i = 0) const { return view().global[i]; }
  std::vector<std::uint32_t> codes(std::int64_t row = 0) const {
    std::vector<std::uint32_t> list;
    for (std::int64_t c = 0; c < view().cols; ++c) list.push_back(code(row, c));
    return list;
  }
  std::vector<int> bytes() const {
    std::vector<int> list;
    for (std::int64_t i = 0; i < matrix.data().bytes(); ++i) list.push_back(std::to_integer<int>(matrix.data().data()[i]));
    return list;
  }
};

// rows x (values.size() / rows), row by row, rounded to options.from first.
inline Quantized quantized(const Format& format, std::int64_t rows, const std::vector<float>& values, const QuantizeOptions& options = {}) {
  const std::int64_t cols = static_cast<std::int64_t>(values.size()) / rows;
  const auto from = OwnedMatrix::make(Matrix{.format = options.from, .rows = rows, .cols = cols});
  Matrix tags{.format = format, .rows = rows, .cols = cols};
  tags.scale_layout = options.scales;
  tags.global_kind = options.global;
  auto to = OwnedMatrix::make(tags);
  EXPECT_TRUE(from && to);
  const MutableMatrix input = with_strides(from->view());
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    set_code(input, 0, i / cols, i % cols, encode(options.from.element, values[static_cast<std::size_t>(i)]));
  }
  for (std::int64_t i = 0; i < to->global_count() && options.given != 0; ++i) to->view().global[i] = options.given;
  const Status status =
      quantize({.from = input, .to = to->view(), .global_given = options.given != 0, .recipe = options.recipe}, {.device = &cpu_device()});
  EXPECT_TRUE(status) << status.sentence;
  return {std::move(*to)};
}

// Every value of the first batch, row by row.
inline std::vector<float> dequantized(const Matrix& from) {
  const auto to = OwnedMatrix::make(Matrix{.format = kF32, .rows = from.rows, .cols = from.cols});
  EXPECT_TRUE(to);
  const Status status = dequantize({.from = from, .to = to->view()}, {.device = &cpu_device()});
  EXPECT_TRUE(status) << status.sentence;
  const auto* values = reinterpret_cast<const float*>(to->data().data());
  return {values, values + from.rows * from.cols};
}

inline std::vector<float> repeated(std::size_t count, float value) { return std::vector<float>(count, value); }

}  // namespace finescale::test
