// Grouped products whose right answer is known without a computer, at the places where kernels of this kind have been wrong.
#include "support/small_matrices.h"

#include <finescale/grouped_gemm.h>
#include <finescale/routing.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace finescale::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Weights of group g: every element e + 1, so that a row of ones gives K (e + 1). Values up to 6 of E2M1, or steps of scales.
OwnedMatrix numbered_groups(std::int64_t groups, std::int64_t rows, std::int64_t cols) {
  OwnedMatrix b = constant_matrix({.format = kNvfp4, .batch = groups, .rows = rows, .cols = cols}, 1.0f);
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; c += 16) set_scale(b.view(), g, r, c, static_cast<float>(g + 1));
    }
  }
  return b;
}

// Rows of one value each, of `expected[row]` in every column.
void expect_rows(const GroupedGemmProblem& problem, const OwnedMatrix& d, const std::vector<float>& expected) {
  run_every_row(problem, d, [&](const OwnedMatrix& result) {
    for (std::int64_t m = 0; m < problem.gemm.d.rows; ++m) {
      for (std::int64_t n = 0; n < problem.gemm.d.cols; ++n) {
        ASSERT_EQ(value_at(result, 0, m, n), expected[static_cast<std::size_t>(m)]) << "row " << m << ", column " << n;
      }
    }
  });
}

void make_row_nan(const OwnedMatrix& a, std::int64_t row) {
  for (std::int64_t k = 0; k < a.view().cols; ++k) set_value(a.view(), 0, row, k, kNan);
}

TEST(GroupedValues, a_row_takes_its_own_group_whatever_its_neighbours_take) {
  std::vector<std::int32_t> ids;
  for (const auto& [group, size] : {std::pair{0, 128}, {1, 130}, {2, 65}}) ids.insert(ids.end(), static_cast<std::size_t>(size), group);
  std::vector<std::int32_t> shuffled(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) shuffled[i * 101 % ids.size()] = ids[i];
  const auto rows = static_cast<std::int64_t>(ids.size());
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = rows, .cols = 128}, 1.0f), b = numbered_groups(3, 4, 128);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = 4});
  for (const auto& order : {ids, shuffled}) {
    std::vector<float> expected;
    for (const std::int32_t id : order) expected.push_back(128.0f * static_cast<float>(id + 1));
    expect_rows({.gemm = {.a = a.view(), .b = b.view(), .d = d.view()},
                 .routing = {.kind = Routing::Kind::row_groups, .index = order.data(), .index_length = rows}},
                d, expected);
  }
}

TEST(GroupedValues, a_row_of_no_group_is_zero_even_where_it_holds_nan) {
  std::vector<std::int32_t> ids(124, -1);
  std::fill_n(ids.begin(), 5, 0);
  std::fill_n(ids.begin() + 8, 4, 1);
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 124, .cols = 128}, 1.0f), b = numbered_groups(2, 3, 128);
  const OwnedMatrix c = constant_matrix({.format = kF32, .rows = 124, .cols = 3}, 0.5f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 124, .cols = 3});
  std::vector<float> expected;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) make_row_nan(a, static_cast<std::int64_t>(i));
    expected.push_back(ids[i] < 0 ? 0.0f : 128.0f * static_cast<float>(ids[i] + 1) + 0.5f);
  }
  expect_rows({.gemm = {.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.residual = c.view()}},
               .routing = {.kind = Routing::Kind::row_groups, .index = ids.data(), .index_length = 124}},
              d, expected);
}

TEST(GroupedValues, rows_past_the_last_offset_are_zero) {
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 16, .cols = 32}, 1.0f), b = numbered_groups(2, 3, 32);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF16, .rows = 16, .cols = 3});
  for (std::int64_t row = 6; row < 16; ++row) make_row_nan(a, row);
  std::vector<float> expected(16, 0.0f);
  std::fill_n(expected.begin(), 2, 32.0f);
  std::fill_n(expected.begin() + 2, 4, 64.0f);
  const std::int32_t ends[] = {2, 6}, from_zero[] = {0, 2, 6};
  GroupedGemmProblem problem{.gemm = {.a = a.view(), .b = b.view(), .d = d.view()},
                             .routing = {.kind = Routing::Kind::end_offsets, .index = ends, .index_length = 2}};
  expect_rows(problem, d, expected);
  problem.routing = {.kind = Routing::Kind::offsets_from_zero, .index = from_zero, .index_length = 3};
  expect_rows(problem, d, expected);
}

TEST(GroupedValues, empty_groups_shift_nothing) {
  const std::int32_t ends[] = {3, 3, 8, 10, 10, 11};
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 11, .cols = 16}, 0.5f), b = numbered_groups(6, 2, 16);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kBf16, .rows = 11, .cols = 2});
  expect_rows({.gemm = {.a = a.view(), .b = b.view(), .d = d.view()},
               .routing = {.kind = Routing::Kind::end_offsets, .index = ends, .index_length = 6}},
              d, {8, 8, 8, 24, 24, 24, 24, 24, 32, 32, 48});
}

TEST(GroupedValues, an_odd_number_of_columns_never_spills_into_the_next_row) {
  const std::int32_t ids[] = {0, 0, 1, 1};
  const OwnedMatrix a = constant_matrix({.format = kF32, .rows = 4, .cols = 64}, 1.0f),
                    b = constant_matrix({.format = kNvfp4, .batch = 2, .rows = 33, .cols = 64}, 1.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 4, .cols = 33});
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t k = 0; k < 64; ++k) set_value(a.view(), 0, row, k, static_cast<float>(1 << row));
  }
  for (int repeat = 0; repeat < 20; ++repeat) {
    expect_rows({.gemm = {.a = a.view(), .b = b.view(), .d = d.view()},
                 .routing = {.kind = Routing::Kind::row_groups, .index = ids, .index_length = 4}},
                d, {64, 128, 256, 512});
  }
}

// 64 -> 192 -> 64 with relu2 in between: 192 is no multiple of 128.
TEST(GroupedValues, two_products_in_a_row_take_sizes_that_are_no_tile) {
  const std::int32_t ids[] = {0, 1};
  const Matrix up{
      .format = kNvfp4, .batch = 2, .rows = 192, .cols = 64, .scale_layout = ScaleLayout::scale_128x4, .global_kind = GlobalScale::one};
  Matrix down = up;
  down.rows = 64;
  down.cols = 192;
  const OwnedMatrix x = constant_matrix({.format = kBf16, .rows = 2, .cols = 64}, 6.0f), fc1 = constant_matrix(up, 1.0f),
                    fc2 = constant_matrix(down, 1.0f);
  fc1.view().global[0] = fc2.view().global[0] = 0x1p-6f;
  const OwnedMatrix hidden = *OwnedMatrix::make({.format = kBf16, .rows = 2, .cols = 192}),
                    y = *OwnedMatrix::make({.format = kBf16, .rows = 2, .cols = 64});
  const Routing routing{.kind = Routing::Kind::row_groups, .index = ids, .index_length = 2};
  expect_rows(
      {.gemm = {.a = x.view(), .b = fc1.view(), .d = hidden.view(), .epilogue = {.activation = Activation::relu2}}, .routing = routing},
      hidden, {36, 36});
  expect_rows({.gemm = {.a = hidden.view(), .b = fc2.view(), .d = y.view()}, .routing = routing}, y, {108, 108});
}

TEST(GroupedValues, each_group_has_its_own_global_scale_and_bias) {
  const std::int32_t counts[] = {2, 1};
  const OwnedMatrix a = constant_matrix({.format = kF16, .batch = 2, .rows = 2, .cols = 16}, 1.0f);
  const OwnedMatrix b = constant_matrix({.format = kNvfp4, .batch = 2, .rows = 3, .cols = 16, .global_kind = GlobalScale::per_batch}, 1.0f);
  const OwnedMatrix bias = constant_matrix({.format = kBf16, .batch = 2, .rows = 1, .cols = 3}, 1.0f);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .batch = 2, .rows = 2, .cols = 3});
  b.view().global[0] = 0.5f;
  b.view().global[1] = 3.0f;
  for (std::int64_t n = 0; n < 3; ++n) set_value(bias.view(), 1, 0, n, -8.0f);
  run_every_row(GroupedGemmProblem{.gemm = {.a = a.view(), .b = b.view(), .d = d.view(), .epilogue = {.bias = bias.view()}},
                                   .routing = {.kind = Routing::Kind::counts, .index = counts, .index_length = 2}},
                d, [](const OwnedMatrix& result) {
                  EXPECT_EQ(value_at(result, 0, 0, 0), 9.0f);
                  EXPECT_EQ(value_at(result, 0, 1, 2), 9.0f);
                  EXPECT_EQ(value_at(result, 1, 0, 1), 40.0f);
                  EXPECT_EQ(value_at(result, 1, 1, 1), 0.0f) << "padded";
                });
}

TEST(GroupedValues, a_token_is_the_weighted_sum_of_its_rows_or_zero) {
  const std::int32_t ids[] = {0, 1, 1, -1}, gather[] = {2, 2, 0, 1};
  const float weights[] = {0.5f, 0.25f, 2.0f, 9.0f};
  const OwnedMatrix a = constant_matrix({.format = kBf16, .rows = 3, .cols = 16}, 1.0f), b = numbered_groups(2, 4, 16);
  const OwnedMatrix d = *OwnedMatrix::make({.format = kBf16, .rows = 3, .cols = 4});
  make_row_nan(a, 1);  // only the row of no group would read it
  GroupedGemmProblem problem{.gemm = {.a = a.view(), .b = b.view(), .d = d.view()},
                             .routing = {.kind = Routing::Kind::row_groups,
                                         .index = ids,
                                         .index_length = 4,
                                         .gather = gather,
                                         .gather_length = 4,
                                         .weight = weights,
                                         .summed_rows = 3}};
  expect_rows(problem, d, {64, 0, 16});
  problem.routing.weight = nullptr;
  expect_rows(problem, d, {32, 0, 48});
}

TEST(GroupedValues, no_rows_and_no_groups_succeed) {
  const OwnedMatrix none = *OwnedMatrix::make({.format = kNvfp4, .batch = 0, .rows = 3, .cols = 16});
  const OwnedMatrix b = numbered_groups(2, 3, 16), d = *OwnedMatrix::make({.format = kF32, .rows = 0, .cols = 3});
  const OwnedMatrix a = *OwnedMatrix::make({.format = kBf16, .rows = 0, .cols = 16});
  const std::int32_t ends[] = {0, 0};
  run_every_row(GroupedGemmProblem{.gemm = {.a = a.view(), .b = b.view(), .d = d.view()}, .routing = {.index = ends, .index_length = 2}}, d,
                [](const OwnedMatrix&) {});
  const OwnedMatrix two = constant_matrix({.format = kBf16, .rows = 2, .cols = 16}, 1.0f),
                    out = *OwnedMatrix::make({.format = kF32, .rows = 2, .cols = 3});
  expect_rows({.gemm = {.a = two.view(), .b = none.view(), .d = out.view()}}, out, {0, 0});
}

}  // namespace
}  // namespace finescale::test
