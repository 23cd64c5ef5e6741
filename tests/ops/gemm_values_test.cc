// Products whose right answer is known without a computer, at the places where kernels of this kind have been wrong.
#include "support/small_matrices.h"

#include <finescale/finish.h>
#include <finescale/gemm.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace finescale::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void expect_values(const GemmProblem& problem, const OwnedMatrix& d, const std::vector<float>& row, float tolerance = 0.0f) {
  run_every_row(problem, d, [&](const OwnedMatrix& result) {
    for (std::int64_t b = 0; b < problem.d.batch; ++b) {
      for (std::int64_t m = 0; m < problem.d.rows; ++m) {
        for (std::int64_t n = 0; n < problem.d.cols; ++n) {
          EXPECT_NEAR(value_at(result, b, m, n), row[static_cast<std::size_t>(n)], tolerance) << "row " << m << ", column " << n;
        }
      }
    }
  });
}

// x = 6 times ones of scale 1/64 (gate) and 1/32 (up) over 16 columns: z = 1.5 and 3.
struct GatedProduct {
  OwnedMatrix a = constant_matrix({.format = kF32, .rows = 2, .cols = 16}, 6.0f);
  OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 2, .cols = 1});
  OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 2, .cols = 16}, 1.0f);
  GemmProblem problem{.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.activation = Activation::silu}};
};

TEST(GemmValues, gate_and_up_lie_where_the_caller_says) {
  const float gate_first = 1.5f / (1.0f + std::exp(-1.5f)) * 3.0f, up_first = 3.0f / (1.0f + std::exp(-3.0f)) * 1.5f;
  for (const auto& [gate, expected] :
       {std::pair{Gate::halves_gate_first, gate_first}, {Gate::alternating_rows, gate_first}, {Gate::halves_up_first, up_first}}) {
    GatedProduct product;
    set_scale(product.b.view(), 0, 0, 0, 1.0f / 64);
    set_scale(product.b.view(), 0, 1, 0, 1.0f / 32);
    product.problem.epilogue.gate = gate;
    expect_values(product.problem, product.d, {expected}, 2e-6f);
  }
}

TEST(GemmValues, gate_and_up_keep_their_own_global_scales) {
  const float expected = 6.0f / (1.0f + std::exp(-6.0f)) * 24.0f;
  GatedProduct rows;
  const float globals[] = {1.0f / 16, 1.0f / 4};
  rows.problem.b.global_kind = GlobalScale::per_row;
  rows.problem.b.global = globals;
  rows.problem.epilogue.gate = Gate::halves_gate_first;
  expect_values(rows.problem, rows.d, {expected}, 5e-5f);
  GatedProduct matrices;
  matrices.problem.b.rows = 1;
  matrices.problem.b.global_kind = GlobalScale::one;
  matrices.problem.b2 = matrices.problem.b;
  matrices.problem.b.global = &globals[0];
  matrices.problem.b2.global = &globals[1];
  matrices.problem.epilogue.gate = Gate::second_matrix;
  expect_values(matrices.problem, matrices.d, {expected}, 5e-5f);
}

TEST(GemmValues, a_sum_beyond_f16_is_right_once_the_global_scale_is_applied) {
  const OwnedMatrix a = constant_matrix({.format = kF16, .rows = 3, .cols = 32}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 2, .cols = 32, .global_kind = GlobalScale::one}, 6.0f, 448.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF16, .rows = 3, .cols = 2});
  b.view().global[0] = 0x1p-10f;
  expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, {84.0f, 84.0f});
}

TEST(GemmValues, an_f16_result_beyond_its_range_is_infinite) {
  const OwnedMatrix a = constant_matrix({.format = kF16, .rows = 1, .cols = 32}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 1, .cols = 32}, 6.0f, 448.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF16, .rows = 1, .cols = 1});
  run_every_row(GemmProblem{.a = a.view(), .b = b.view(), .d = d.view()}, d,
                [](const OwnedMatrix& result) { EXPECT_EQ(value_at(result, 0, 0, 0), std::numeric_limits<float>::infinity()); });
}

TEST(GemmValues, a_global_scale_on_an_mx_format_is_honoured) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 1, .cols = 32}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kMxfp4, .rows = 3, .cols = 32, .global_kind = GlobalScale::one}, 2.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 3});
  b.view().global[0] = 0.5f;
  expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, {32.0f, 32.0f, 32.0f});
}

TEST(GemmValues, each_batch_of_tiled_scales_is_padded_by_itself) {
  const Matrix tags{.format = kNvfp4, .batch = 2, .rows = 16, .cols = 128, .scale_layout = ScaleLayout::scale_128x4};
  const OwnedMatrix a = constant_matrix(tags, 1.0f);
  Matrix b_tags = tags;
  b_tags.rows = 128;
  const OwnedMatrix b = constant_matrix(b_tags, 1.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .batch = 2, .rows = 16, .cols = 128});
  EXPECT_EQ(a.scales().bytes(), 2048);
  for (std::int64_t r = 0; r < 16; ++r) {
    for (std::int64_t c = 0; c < 128; c += 16) set_scale(a.view(), 1, r, c, 2.0f);
  }
  run_every_row(GemmProblem{.a = a.view(), .b = b.view(), .d = d.view()}, d, [](const OwnedMatrix& result) {
    for (std::int64_t batch = 0; batch < 2; ++batch) {
      for (std::int64_t m = 0; m < 16; ++m) {
        for (std::int64_t n = 0; n < 128; ++n) ASSERT_EQ(value_at(result, batch, m, n), batch == 0 ? 128.0f : 256.0f);
      }
    }
  });
}

TEST(GemmValues, poisoned_padding_of_scale_tiles_never_reaches_a_result) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 1, .cols = 64}, 1.0f);
  for (const ScaleLayout layout : {ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
    const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 5, .cols = 64, .scale_layout = layout}, 1.0f, 2.0f);
    const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 5});
    expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, std::vector<float>(5, 128.0f));
  }
}

TEST(GemmValues, block_scales_may_be_a_transposed_view) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 1, .cols = 48}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 2, .cols = 48, .scale_row_stride = 1, .scale_col_stride = 2}, 1.0f);
  const float scales[2][3] = {{1.0f, 2.0f, 4.0f}, {0.5f, 8.0f, 0.25f}};
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t k = 0; k < 3; ++k) set_scale(b.view(), 0, r, 16 * k, scales[r][k]);
  }
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 2});
  expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, {112.0f, 140.0f});
}

TEST(GemmValues, the_last_block_of_k_counts_at_every_length) {
  for (const std::int64_t k : {16, 32, 288, 1024, 1040, 1056, 1152, 1280, 1312, 2048, 2176}) {
    for (const std::int64_t rows : {1, 5}) {
      const OwnedMatrix a = constant_matrix({.format = kNvfp4, .rows = rows, .cols = k}, 1.0f);
      const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 3, .cols = k}, 1.0f);
      const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = 3});
      for (std::int64_t c = k - 16; c < k; ++c) set_value(b.view(), 0, 1, c, 6.0f);
      const auto whole = static_cast<float>(k);
      expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, {whole, whole + 80.0f, whole});
    }
  }
}

TEST(GemmValues, few_outputs_read_scales_as_numbers) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    const OwnedMatrix a = constant_matrix({.format = kF16, .rows = 1, .cols = 64}, 1.0f);
    const OwnedMatrix b = constant_matrix({.format = kMxfp4, .rows = n, .cols = 64}, 1.0f);
    for (std::int64_t r = 0; r < n; ++r) set_scale(b.view(), 0, r, 32, 2.0f);  // bytes 127 and 128
    const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 1, .cols = n});
    expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, std::vector<float>(static_cast<std::size_t>(n), 96.0f));
  }
}

TEST(GemmValues, a_partial_block_of_rows_takes_the_scale_of_its_own_block) {
  const OwnedMatrix a = constant_matrix({.format = kFp8E4m3Row128, .rows = 3, .cols = 256}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kFp8E4m3Block128, .rows = 192, .cols = 256}, 1.0f);
  const float scales[2][2] = {{1.0f, 2.0f}, {4.0f, 8.0f}};
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t k = 0; k < 2; ++k) set_scale(b.view(), 0, 128 * r, 128 * k, scales[r][k]);
  }
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 3, .cols = 192});
  std::vector<float> expected(192, 1536.0f);
  std::fill_n(expected.begin(), 128, 384.0f);
  expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, expected);
}

TEST(GemmValues, beta_zero_never_reads_the_residual) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 2, .cols = 32}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 1, .cols = 32}, 1.0f);
  const OwnedMatrix c = constant_matrix({.format = kBf16, .rows = 2, .cols = 1}, kNan);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 2, .cols = 1});
  GemmProblem problem{.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.alpha = 0.5f, .beta = 0.0f, .residual = c.view()}};
  expect_values(problem, d, {16.0f});
  const OwnedMatrix two = constant_matrix({.format = kBf16, .rows = 2, .cols = 1}, 2.0f);
  problem.epilogue.beta = 1.0f;
  problem.epilogue.residual = two.view();
  expect_values(problem, d, {18.0f});
}

TEST(GemmValues, a_and_b_are_read_even_where_alpha_is_zero) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 1, .cols = 32}, kNan);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 1, .cols = 32}, 0.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 1});
  run_every_row(GemmProblem{.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.alpha = 0.0f}}, d,
                [](const OwnedMatrix& result) { EXPECT_TRUE(std::isnan(value_at(result, 0, 0, 0))); });
}

TEST(GemmValues, each_column_takes_its_own_bias) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 2, .cols = 32}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 40, .cols = 32}, 1.0f);
  const OwnedMatrix bias = constant_matrix({.format = kF16, .rows = 1, .cols = 40}, 0.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kBf16, .rows = 2, .cols = 40});
  std::vector<float> expected;
  for (std::int64_t n = 0; n < 40; ++n) {
    set_value(bias.view(), 0, 0, n, static_cast<float>(n));
    expected.push_back(static_cast<float>(32 + n));
  }
  expect_values({.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.bias = bias.view()}}, d, expected);
}

TEST(GemmValues, parts_of_a_sum_that_cancel_stay_in_fp32) {
  const OwnedMatrix a = constant_matrix({.format = kF32, .rows = 1, .cols = 256}, 8.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = 1, .cols = 256}, 1.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kBf16, .rows = 1, .cols = 1});
  set_value(a.view(), 0, 0, 0, 9.0f);
  for (std::int64_t k = 128; k < 256; ++k) set_value(a.view(), 0, 0, k, -8.0f);
  expect_values({.a = a.view(), .b = b.view(), .d = d.view()}, d, {1.0f});
}

TEST(GemmValues, without_k_the_epilogue_sees_zero) {
  const OwnedMatrix a = *OwnedMatrix::make({.format = kBf16, .rows = 2, .cols = 0}),
                    b = *OwnedMatrix::make({.format = kNvfp4, .rows = 3, .cols = 0});
  const OwnedMatrix bias = constant_matrix({.format = kF32, .rows = 1, .cols = 3}, 1.25f);
  const OwnedMatrix c = constant_matrix({.format = kF32, .rows = 2, .cols = 3}, 2.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 2, .cols = 3});
  expect_values({.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.beta = 3.0f, .bias = bias.view(), .residual = c.view()}}, d,
                std::vector<float>(3, 7.25f));
}

TEST(GemmValues, empty_products_succeed) {
  for (const auto& [rows, cols] : {std::pair{0, 8}, {3, 0}, {0, 0}}) {
    const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = rows, .cols = 32}, 1.0f);
    const OwnedMatrix b = constant_matrix({.format = kNvfp4, .rows = cols, .cols = 32}, 1.0f);
    const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = cols});
    run_every_row(GemmProblem{.a = a.view(), .b = b.view(), .d = d.view()}, d, [](const OwnedMatrix&) {});
  }
}

// The factors of finish.h: only the result may leave the range.
TEST(ProductInOrder, keeps_what_overflows_or_underflows_on_the_way) {
  volatile float big = 0x1.8p100f, small = 0x1.8p-100f;  // not constants, so that it is computed
  EXPECT_EQ(product_in_order(big, big, small, 1.0f), 0x1.bp101f);
  EXPECT_EQ(product_in_order(big, big, 0x1p-120f, 0x1p-120f), 0x1.2p-39f);
  EXPECT_EQ(product_in_order(small, small, 0x1p100f, 0x1p-40f), 0x1.2p-139f);
  EXPECT_EQ(product_in_order(big, big, big, 1.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(product_in_order(-big, big, big, 0.0f), 0.0f);
  EXPECT_EQ(product_in_order(small, small, small, 1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(product_in_order(std::numeric_limits<float>::infinity(), 1.0f, 0.0f, 1.0f)));
  EXPECT_TRUE(std::isnan(product_in_order(big, kNan, 1.0f, 1.0f)));
}

}  // namespace
}  // namespace finescale::test
