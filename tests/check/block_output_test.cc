// D in a block format: every scale and code that the bound allows is right, no other.
#include "check/problems.h"

#include <finescale/formats/block_quantizer.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace finescale {
namespace {

OwnedProblem random_problem(const Format& d, std::int64_t rows = 6, std::int64_t cols = 40) {
  OwnedProblem p(random_operand(tags(kBf16, rows, 100), 1), random_operand(tags(kNvfp4, cols, 100), 2), d);
  if (d.global) p.d.view().global[0] = 0x1.9p-8f;
  return p;
}

// Forms every value in FP32 and quantizes block by block.
void multiply_and_quantize(const OwnedProblem& p, const Dot& dot, Rounding rounding = Rounding::nearest_even) {
  const Matrix a = with_strides(p.problem.a), b = with_strides(p.problem.b);
  const MutableMatrix d = with_strides(p.d.view());
  const Recipe recipe{.rounding = rounding};
  const float g = global_at(d, 0, 0);
  for (std::int64_t row = 0; row < d.rows; row += d.format.block_rows) {
    for (std::int64_t col = 0; col < d.cols; col += d.format.block_cols) {
      const std::int64_t rows = std::min<std::int64_t>(d.format.block_rows, d.rows - row),
                         cols = std::min<std::int64_t>(d.format.block_cols, d.cols - col);
      std::vector<float> values;
      float amax = 0;
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const std::int64_t m = row + i / cols, n = col + i % cols;
        values.push_back(finish_value(p.problem, {0, m, n, 0, m, 0}, dot(a, 0, m, b, 0, n), 0));
        amax = block_amax(amax, values.back());
      }
      const BlockQuantizer block = block_quantizer(d.format, recipe, block_scale_code(d.format, recipe, amax, g), g);
      if (d.format.has_scales()) set_scale_code(d, 0, row, col, block.scale_code);
      for (std::int64_t i = 0; i < rows * cols; ++i) set_code(d, 0, row + i / cols, col + i % cols, block.encode(values[i]));
    }
  }
}

TEST(BlockOutput, right_kernels_pass_in_every_block_format) {
  for (const NamedFormat& named : kFormats) {
    if (named.format.is_plain()) continue;
    const OwnedProblem p = random_problem(named.format, 130, 130);
    for (const Dot& dot : {Dot(double_dot), Dot(sequential_dot)}) {
      multiply_and_quantize(p, dot);
      const CheckReport report = p.judge();
      EXPECT_EQ(report.worst, 0.0) << named.name << " at " << report.row << ' ' << report.col << ": " << report.observed << ' '
                                   << report.exact;
      EXPECT_EQ(report.checked, 130 * 130);
    }
  }
}

TEST(BlockOutput, a_changed_code_or_scale_is_caught) {
  for (const NamedFormat& named : kFormats) {
    if (named.format.is_plain()) continue;
    const OwnedProblem p = random_problem(named.format);
    multiply_and_quantize(p, double_dot);
    const MutableMatrix d = with_strides(p.d.view());
    const std::uint32_t code = code_at(Matrix(d), 0, 3, 37);
    set_code(d, 0, 3, 37, code ^ (1u << (bits(named.format.element) - 2)));
    const CheckReport report = p.judge();
    EXPECT_GT(report.worst, 1.0) << named.name;
    EXPECT_EQ(report.row, 3);
    EXPECT_EQ(report.col, 37);
    set_code(d, 0, 3, 37, code);
    if (!named.format.has_scales()) continue;
    const std::uint32_t scale = scale_code_at(Matrix(d), 0, 3, 37);
    for (const std::uint32_t wrong :
         {scale + (named.format.scale == Element::f32 ? 0x100000u : 1u), scale ^ (1u << (bits(named.format.scale) - 1))}) {
      set_scale_code(d, 0, 3, 37, wrong);
      EXPECT_GT(p.judge().worst, 1.0) << named.name;
    }
  }
}

TEST(BlockOutput, rounding_of_ties_is_judged) {
  // Values 0.25, 0.75, ... at scale 1: the ties of E2M1, exact in FP32, so that the bound allows one code or its neighbour.
  OwnedProblem p(filled(tags(kF32, 1, 1), 1.0f), filled(tags(kMxfp4, 16, 1), 1.0f), kNvfp4);
  p.d.view().global[0] = 1.0f;
  constexpr float kValues[16] = {0.3f, 0.8f, 1.3f, 1.8f, 2.6f, 3.6f, 5.1f, 6.0f, -0.3f, -0.8f, -1.3f, -1.8f, -2.6f, -3.6f, -5.1f, -6.0f};
  p.set_bias(filled(tags(kF32, 1, 16), 0.0f));
  for (int n = 0; n < 16; ++n) put(p.bias, 0, n, kValues[n] - 1.0f);
  multiply_and_quantize(p, double_dot);
  EXPECT_EQ(p.judge().worst, 0.0);
  EXPECT_EQ(scale_code_at(with_strides(Matrix(p.d.view())), 0, 0, 0), 0x38u);
  EXPECT_EQ(get(p.d, 0, 4), 3.0f);
  put(p.d, 0, 4, 2.0f);  // rounded twice, through a grid of halves
  EXPECT_EQ(p.judge().worst, 2.0);
}

TEST(BlockOutput, a_block_with_a_nan_is_all_nan_and_its_neighbours_are_right) {
  for (const Format& format : {kNvfp4, kMxfp8E4m3, kFp8E4m3Row128, kFp8E4m3Tensor}) {
    OwnedProblem p = random_problem(format, 2, 260);
    put(p.a, 0, 0, INFINITY);
    set_code(with_strides(p.b.view()), 0, 5, 0, 0);  // Inf * 0 in output (0, 5), +-Inf in the others of row 0
    multiply_and_quantize(p, double_dot);
    EXPECT_EQ(p.judge().worst, 0.0) << format_name(format);
    const MutableMatrix d = with_strides(p.d.view());
    if (format.has_scales()) {
      set_scale_code(d, 0, 0, 0, encode(format.scale, 1.0f));
      EXPECT_EQ(p.judge().worst, INFINITY) << format_name(format);
    } else {
      set_code(d, 0, 0, 0, 0x7E);
      EXPECT_EQ(p.judge().worst, INFINITY);
    }
  }
}

TEST(BlockOutput, a_nan_scale_over_finite_values_is_wrong) {
  const OwnedProblem p = random_problem(kNvfp4);
  multiply_and_quantize(p, double_dot);
  set_scale_code(with_strides(p.d.view()), 0, 2, 16, 0x7F);
  EXPECT_EQ(p.judge().worst, INFINITY);
}

TEST(BlockOutput, its_own_rows_and_blocks_are_sampled_whole) {
  const OwnedProblem p = random_problem(kNvfp4, 64, 256);
  multiply_and_quantize(p, double_dot);
  const CheckReport report = p.judge({}, {.max_products = 100 * 16 * 100});
  EXPECT_TRUE(report.ok);
  EXPECT_LE(report.checked, 1600);
  EXPECT_GT(report.checked, 800);
  EXPECT_EQ(report.checked % 16, 0);
}

TEST(BlockOutput, tiled_scales_are_read_where_they_lie) {
  Matrix out = tags(kNvfp4, 6, 40);
  out.scale_layout = ScaleLayout::scale_128x4;
  OwnedProblem p = random_problem(kNvfp4);
  p.d = random_operand(out, 3);
  p.problem.d = p.d.view();
  multiply_and_quantize(p, sequential_dot);
  EXPECT_EQ(p.judge().worst, 0.0);
  set_scale_code(with_strides(p.d.view()), 0, 5, 39, 0x7E);
  EXPECT_GT(p.judge().worst, 1.0);
}

}  // namespace
}  // namespace finescale
