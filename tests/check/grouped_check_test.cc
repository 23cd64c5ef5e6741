// Grouped products: which row meets which group, rows of no group, sums into tokens.
#include "check/problems.h"

#include <finescale/routing.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace finescale {
namespace {

struct Grouped {
  OwnedProblem owned;
  std::vector<std::int32_t> index, gather;
  std::vector<float> weight;
  GroupedGemmProblem problem;

  Grouped(OwnedMatrix a, OwnedMatrix b, Routing::Kind kind, std::vector<std::int32_t> entries, const Format& d = kF32)
      : owned(std::move(a), std::move(b), d), index(std::move(entries)) {
    problem.gemm = owned.problem;
    problem.routing.kind = kind;
    problem.routing.index = index.data();
    problem.routing.index_length = static_cast<std::int64_t>(index.size());
  }
  CheckReport judge(const CheckOptions& options = {}) const {
    const auto report = check(problem, owned.d.view(), {}, options);
    EXPECT_TRUE(report) << report.status().sentence;
    return report ? *report : CheckReport{};
  }
  double exact(std::int64_t row, std::int64_t batch = 0) const {
    const auto output = exact_output(problem, batch, row, 0);
    EXPECT_TRUE(output) << output.status().sentence;
    return output ? output->rounded : NAN;
  }
  std::string refused() const {
    const auto report = check(problem, owned.d.view());
    EXPECT_FALSE(report);
    return report.status().sentence;
  }
};

// Expert e is all (e + 1) / 2, so that a row of sixteen ones gives 8 (e + 1).
OwnedMatrix experts(std::int64_t groups, std::int64_t n = 3) {
  OwnedMatrix b = filled(tags(kMxfp4, n, 16, groups), 0.5f);
  for (std::int64_t e = 0; e < groups; ++e) {
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t k = 0; k < 16; ++k) put(b, row, k, static_cast<float>(e + 1) / 2, e);
    }
  }
  return b;
}

OwnedMatrix ones(std::int64_t rows, std::int64_t batch = 1) { return filled(tags(kBf16, rows, 16, batch), 1.0f); }

void expect_rows(const Grouped& g, const std::vector<float>& expected) {
  for (std::size_t row = 0; row < expected.size(); ++row) {
    EXPECT_EQ(g.exact(static_cast<std::int64_t>(row)), expected[row]) << row;
    for (std::int64_t col = 0; col < g.owned.d.view().cols; ++col) put(g.owned.d, static_cast<std::int64_t>(row), col, expected[row]);
  }
  EXPECT_EQ(g.judge().worst, 0.0);
  put(g.owned.d, static_cast<std::int64_t>(expected.size()) - 1, 2, expected.back() + 1e-3f);
  EXPECT_GT(g.judge().worst, 1.0);
}

TEST(GroupedCheck, row_groups_in_any_order) {
  expect_rows({ones(5), experts(4), Routing::Kind::row_groups, {3, 0, -1, 3, 1}}, {32, 8, 0, 32, 16});
}

TEST(GroupedCheck, end_offsets_with_empty_groups_and_a_tail) {
  expect_rows({ones(8), experts(4), Routing::Kind::end_offsets, {2, 2, 5, 6}}, {8, 8, 24, 24, 24, 32, 0, 0});
}

TEST(GroupedCheck, offsets_from_zero) { expect_rows({ones(3), experts(2), Routing::Kind::offsets_from_zero, {0, 1, 3}}, {8, 16, 16}); }

TEST(GroupedCheck, counts_over_a_padded_a) {
  OwnedMatrix a = ones(2, 3);
  for (std::int64_t k = 0; k < 16; ++k) put(a, 1, k, NAN, 0);  // a padded row: never read into a result
  const Grouped g(std::move(a), experts(3), Routing::Kind::counts, {1, 2, 0});
  const double expected[3][2] = {{8, 0}, {16, 16}, {0, 0}};
  for (std::int64_t batch = 0; batch < 3; ++batch) {
    for (std::int64_t row = 0; row < 2; ++row) {
      EXPECT_EQ(g.exact(row, batch), expected[batch][row]);
      for (std::int64_t col = 0; col < 3; ++col) put(g.owned.d, row, col, static_cast<float>(expected[batch][row]), batch);
    }
  }
  EXPECT_EQ(g.judge().worst, 0.0);
  put(g.owned.d, 1, 0, 1e-40f, 2);  // a row of no group is zero, exactly
  EXPECT_GT(g.judge().worst, 1.0);
}

TEST(GroupedCheck, rows_of_no_group_are_zero_whatever_the_residual) {
  Grouped g(ones(2), experts(1), Routing::Kind::row_groups, {-1, 0});
  g.owned.set_residual(filled(tags(kF32, 2, 3), 5.0f));
  g.problem.gemm.epilogue = g.owned.problem.epilogue;
  EXPECT_EQ(g.exact(0), 0.0);
  EXPECT_EQ(g.exact(1), 13.0);
}

TEST(GroupedCheck, bias_and_globals_belong_to_the_group) {
  OwnedMatrix b = experts(2);
  Grouped g(ones(2), std::move(b), Routing::Kind::row_groups, {1, 0});
  g.owned.set_bias(filled(tags(kF32, 1, 3, 2), 100.0f));
  for (std::int64_t col = 0; col < 3; ++col) put(g.owned.bias, 0, col, 200.0f, 1);
  const float globals[2] = {0.5f, 3.0f};
  g.problem.gemm.epilogue = g.owned.problem.epilogue;
  g.problem.gemm.b.global_kind = GlobalScale::per_batch;
  g.problem.gemm.b.global = globals;
  EXPECT_EQ(g.exact(0), 248.0);
  EXPECT_EQ(g.exact(1), 104.0);
}

TEST(GroupedCheck, gathered_rows_sum_into_tokens_in_ascending_order) {
  OwnedMatrix a = ones(3);
  for (std::int64_t k = 0; k < 16; ++k) put(a, 2, k, 2.0f);
  Grouped g(std::move(a), experts(2), Routing::Kind::end_offsets, {2, 4});
  g.gather = {0, 2, 2, 0};
  g.weight = {0.5f, 0.25f, 4.0f, 1.0f};
  g.problem.routing.gather = g.gather.data();
  g.problem.routing.gather_length = 4;
  g.problem.routing.weight = g.weight.data();
  g.problem.routing.summed_rows = 3;
  expect_rows(g, {0.5f * 8 + 16, 0, 0.25f * 16 + 4 * 32});
}

// Eight rows a token, products of one term: the roundings of the sum are most of the error.
TEST(GroupedCheck, sums_in_fp32_pass_and_a_missing_row_is_caught) {
  Grouped g(random_operand(tags(kF32, 10, 1), 61), random_operand(tags(kMxfp4, 30, 1, 2), 62), Routing::Kind::row_groups,
            std::vector<std::int32_t>(80, 1));
  for (std::uint64_t i = 0; i < 80; ++i) {
    g.gather.push_back(static_cast<std::int32_t>(i % 10));
    g.weight.push_back(static_cast<float>(hash_unit(63, i) - 0.5));
  }
  g.problem.routing.gather = g.gather.data();
  g.problem.routing.gather_length = 80;
  g.problem.routing.weight = g.weight.data();
  g.problem.routing.summed_rows = 10;
  const Matrix a = with_strides(g.problem.gemm.a), b = with_strides(g.problem.gemm.b);
  const auto write = [&](std::size_t rows) {
    for (std::int64_t token = 0; token < 10; ++token) {
      for (std::int64_t col = 0; col < 30; ++col) {
        float sum = 0;
        for (std::size_t i = 0; i < rows; ++i) {
          if (g.gather[i] == token) sum += g.weight[i] * sequential_dot(a, 0, token, b, 1, col);
        }
        put(g.owned.d, token, col, sum);
      }
    }
  };
  write(80);
  EXPECT_LE(g.judge().worst, 1.0);
  write(79);
  EXPECT_GT(g.judge().worst, 1.0);
}

TEST(GroupedCheck, gathered_rows_without_a_sum) {
  OwnedMatrix a = ones(3);
  for (std::int64_t k = 0; k < 16; ++k) put(a, 2, k, 2.0f);
  Grouped g(std::move(a), experts(2), Routing::Kind::end_offsets, {1, 4});
  g.owned.d = filled(tags(kF32, 4, 3), 0.0f);
  g.problem.gemm.d = g.owned.d.view();
  g.gather = {2, 0, 2, 1};
  g.problem.routing.gather = g.gather.data();
  g.problem.routing.gather_length = 4;
  expect_rows(g, {16, 16, 32, 16});
}

TEST(GroupedCheck, scales_padded_group_by_group) {
  Matrix shape = tags(kMxfp8E4m3, 5, 16);
  shape.scale_layout = ScaleLayout::scale_128x4_per_group;
  auto made = OwnedMatrix::make(shape, 2);
  ASSERT_TRUE(made);
  const MutableMatrix a = with_strides(made->view());
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t k = 0; k < 16; ++k) set_code(a, 0, row, k, encode(Element::e4m3, 1.0f));
    set_scale_code(a, 0, row < 2 ? row : 128 + row - 2, 0, 127 + static_cast<std::uint32_t>(row));
  }
  expect_rows({*std::move(made), experts(2), Routing::Kind::end_offsets, {2, 5}}, {8, 16, 64, 128, 256});
}

TEST(GroupedCheck, random_routing_passes_and_a_wrong_group_is_caught) {
  const std::int64_t rows = 40, groups = 5;
  std::vector<std::int32_t> ids;
  for (std::uint64_t i = 0; i < 40; ++i) ids.push_back(static_cast<std::int32_t>(hash_bits(9, i) % 6) - 1);
  const Grouped g(random_operand(tags(kNvfp4, rows, 80), 1), random_operand(tags(kNvfp4, 20, 80, groups), 2), Routing::Kind::row_groups,
                  ids, kBf16);
  const Matrix a = with_strides(g.problem.gemm.a), b = with_strides(g.problem.gemm.b);
  const auto write = [&](std::int64_t shift) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t group = ids[static_cast<std::size_t>(row)];
      for (std::int64_t col = 0; col < 20; ++col) {
        const std::int64_t from = group < 0 ? 0 : (group + shift) % groups;
        const float value = finish_value(g.problem.gemm, {0, row, col, 0, row, from}, sequential_dot(a, 0, row, b, from, col), 0);
        put(g.owned.d, row, col, group < 0 ? 0.0f : value);
      }
    }
  };
  write(0);
  EXPECT_LE(g.judge().worst, 1.0);
  write(1);
  EXPECT_GT(g.judge().worst, 1.0);
}

TEST(GroupedCheck, bad_routing_is_refused_with_position_and_value) {
  EXPECT_NE(Grouped(ones(2), experts(2), Routing::Kind::row_groups, {0, 2}).refused().find("index[1] = 2"), std::string::npos);
  EXPECT_NE(Grouped(ones(2), experts(2), Routing::Kind::row_groups, {-2, 0}).refused().find("index[0] = -2"), std::string::npos);
  EXPECT_NE(Grouped(ones(4), experts(2), Routing::Kind::end_offsets, {3, 2}).refused().find("index[1] = 2"), std::string::npos);
  EXPECT_NE(Grouped(ones(4), experts(2), Routing::Kind::end_offsets, {3, 5}).refused().find("index[1] = 5"), std::string::npos);
  EXPECT_NE(Grouped(ones(2, 2), experts(2), Routing::Kind::counts, {3, 0}).refused().find("index[0] = 3"), std::string::npos);
  Grouped g(ones(2), experts(2), Routing::Kind::row_groups, {0, 1});
  g.gather = {0, 2};
  g.problem.routing.gather = g.gather.data();
  g.problem.routing.gather_length = 2;
  EXPECT_NE(g.refused().find("gather[1] = 2"), std::string::npos);
}

}  // namespace
}  // namespace finescale
