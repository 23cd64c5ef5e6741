// grouped_gemm, swept: kinds of routing x sizes x formats x epilogues. Each row of a device is judged by the oracle at its own
// bound; rows of one summation order must agree bit by bit, and so must two runs.
#pragma once

#include "support/gemm_sweep.h"
#include "support/grouped_gemm_case.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace finescale::test {

inline Result<OwnedMatrix> run_case(const GroupedCase& c, const Kernel<GroupedGemmProblem>& kernel, const Device& device) {
  const GroupedGemmProblem tags = grouped_tags(c);
  auto placed = place(device, make_grouped_operands(c, tags, device));
  FINESCALE_TRY(placed);
  FINESCALE_TRY(run_kernel(kernel, grouped_problem(tags, *placed), device));
  FINESCALE_TRY(placed->gemm.d.fetch(device));
  return std::move(placed->gemm.d).release();
}

inline void expect_only_elements_written(const GroupedCase& c, const OwnedMatrix& d) {
  const bool per_group = d.view().format.has_scales() && d.view().scale_layout == ScaleLayout::scale_128x4_per_group;
  if (!per_group) return expect_only_elements_written(d);
  expect_only_elements_written(d, padded_rows_of(c, d.view().rows, -1), padded_tile_rows(c));
}

inline void expect_rows_right(const GroupedCase& c, const Device& device, SweepReport& report) {
  SCOPED_TRACE(c.label());
  const GroupedGemmProblem tags = grouped_tags(c);
  const auto host = make_grouped_operands(c, tags, device);
  const GroupedGemmProblem problem = grouped_problem(tags, host);
  std::map<std::int32_t, OwnedMatrix> by_order;
  for_each_kernel(problem, device, report, [&](const Kernel<GroupedGemmProblem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const auto first = run_case(c, kernel, device);
    auto second = run_case(c, kernel, device);
    ASSERT_TRUE(first) << first.status().sentence;
    ASSERT_TRUE(second) << second.status().sentence;
    expect_same(*first, *second);
    const Accumulation adds = kernel.adds(with_strides(problem));
    EXPECT_TRUE(within_bound(problem, first->view(), adds));
    expect_only_elements_written(c, *first);
    if (adds.order == 0) return;
    const auto [same, is_first] = by_order.try_emplace(adds.order);
    if (is_first) {
      same->second = std::move(*second);
    } else {
      expect_same(same->second, *first);
    }
  });
}

inline void sweep_grouped_gemm(const Device& device, const std::vector<GroupedCase>& cases, bool every_row = true) {
  SweepReport report;
  for (const GroupedCase& c : cases) expect_rows_right(c, device, report);
  report.finish(every_row);
}

inline constexpr Routing::Kind kRoutingKinds[] = {Routing::Kind::row_groups, Routing::Kind::end_offsets, Routing::Kind::offsets_from_zero,
                                                  Routing::Kind::counts};

// Sizes on either side of every tile, empty groups first, last and between, no group, no row.
inline std::vector<GroupedCase> grouped_size_cases() {
  const std::vector<std::vector<std::int32_t>> kSizes = {
      {}, {0}, {0, 0, 0}, {1}, {5, 0, 3}, {0, 0, 7, 0}, {1, 1, 1, 1, 1, 1, 1, 1}, {15, 16, 17}, {63, 1, 65}, {128, 2}, {127, 0, 130}};
  std::vector<GroupedCase> cases;
  for (const auto& sizes : kSizes) {
    for (const Routing::Kind kind : kRoutingKinds) {
      for (const std::int32_t tail : {0, 3}) {
        GroupedCase c{
            .gemm = {.a = kBf16, .b = kNvfp4, .n = 19, .k = 50}, .kind = kind, .sizes = sizes, .tail = tail, .shuffled = tail != 0};
        c.gemm.prepared = cases.size() % 3 == 0;
        c.gemm.b_global = cases.size() % 2 == 0 ? GlobalScale::per_batch : GlobalScale::none;
        if (cases.size() % 4 == 1) c.gemm.residual = kF32;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// Every format of A and B, block-format outputs, scale layouts counted by group, gates and biases of each group.
inline std::vector<GroupedCase> grouped_format_cases() {
  std::vector<GroupedCase> cases;
  const auto add = [&](const GemmCase& gemm, Routing::Kind kind) {
    cases.push_back({.gemm = gemm, .kind = kind, .sizes = {6, 0, 1, 9}, .tail = 2, .shuffled = cases.size() % 2 == 0});
  };
  for (const NamedFormat& a : kFormats) {
    for (const NamedFormat& b : kFormats) {
      if (b.format.is_plain()) continue;
      GemmCase gemm{.a = a.format, .b = b.format, .d = kBf16, .n = 21, .k = 150, .prepared = cases.size() % 2 == 0};
      gemm.a_global = usual_global(a.format);
      gemm.b_global = b.format.global ? GlobalScale::per_batch : GlobalScale::none;
      add(gemm, kRoutingKinds[cases.size() % 4]);
    }
  }
  for (const Routing::Kind kind : kRoutingKinds) {
    add({.a = kNvfp4, .d = kNvfp4, .n = 35, .k = 32, .d_scales = ScaleLayout::scale_128x4, .d_global = GlobalScale::one}, kind);
    add({.a = kMxfp8E4m3, .b = kMxfp4, .d = kMxfp8E4m3, .n = 64, .k = 64, .a_scales = ScaleLayout::scale_128x4}, kind);
    add({.a = kBf16,
         .d = kBf16,
         .n = 17,
         .k = 48,
         .b_global = GlobalScale::per_row,
         .gate = Gate::halves_gate_first,
         .activation = Activation::silu,
         .bias = kF32},
        kind);
    add({.a = kBf16, .d = kF16, .n = 17, .k = 48, .gate = Gate::second_matrix, .activation = Activation::gelu_tanh, .residual = kBf16},
        kind);
    add({.a = kF32, .b = kMxfp8E4m3, .n = 18, .k = 40, .strided = true}, kind);
    if (!has_offsets({.kind = kind})) continue;
    GemmCase per_group{.a = kNvfp4, .d = kNvfp4, .n = 40, .k = 80};
    per_group.a_scales = per_group.d_scales = ScaleLayout::scale_128x4_per_group;
    per_group.a_global = per_group.d_global = GlobalScale::one;
    cases.push_back({.gemm = per_group, .kind = kind, .sizes = {130, 0, 3, 128}, .tail = 5});
  }
  return cases;
}

// Gathered rows, and weighted sums of them into tokens; a token may be routed to many groups or to none.
inline std::vector<GroupedCase> grouped_token_cases() {
  std::vector<GroupedCase> cases;
  for (const Routing::Kind kind : {Routing::Kind::row_groups, Routing::Kind::end_offsets, Routing::Kind::offsets_from_zero}) {
    for (const Format& a : {kBf16, kNvfp4, kFp8E4m3Row128}) {
      for (const std::int64_t tokens : {1, 7, 40}) {
        GroupedCase c{.gemm = {.a = a, .d = kBf16, .n = 20, .k = 70}, .kind = kind, .sizes = {4, 0, 11, 1}, .tail = 2, .tokens = tokens};
        c.gemm.a_global = a.global ? GlobalScale::per_row : GlobalScale::none;
        c.gemm.prepared = tokens == 7;
        c.shuffled = tokens == 40;
        cases.push_back(c);
        c.gemm.gate = Gate::alternating_rows;
        c.gemm.activation = Activation::silu;
        c.summed = true;
        cases.push_back(c);
        c.weighted = true;
        c.gemm.bias = kBf16;
        cases.push_back(c);
        c.gemm.d = kMxfp8E4m3;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// A row of A and the group that multiplies it.
struct RoutedRow {
  std::int32_t token, group;
};

// Codes of D, row after row, of the row that plan() takes; `rows` in the order of the routing.
inline std::vector<std::uint32_t> routed_codes(const GemmCase& gemm, const std::vector<RoutedRow>& rows, Routing::Kind kind,
                                               const Device& device) {
  GroupedCase c{.gemm = gemm, .kind = kind, .sizes = std::vector<std::int32_t>(3, 0)};
  c.tokens = 16;
  std::vector<std::int32_t> groups, gather;
  for (const RoutedRow& row : rows) {
    ++c.sizes[static_cast<std::size_t>(row.group)];
    groups.push_back(row.group);
    gather.push_back(row.token);
  }
  const GroupedGemmProblem tags = grouped_tags(c);
  auto host = make_grouped_operands(c, tags, device);
  if (kind == Routing::Kind::row_groups) host.index = guarded(groups);
  host.gather = guarded(gather);
  auto operands = place(device, std::move(host));
  EXPECT_TRUE(operands) << operands.status().sentence;
  const GroupedGemmProblem problem = grouped_problem(tags, *operands);
  const auto plan = finescale::plan(problem, device);
  EXPECT_TRUE(plan) << plan.status().sentence;
  const Status status = run_kernel(*plan->kernel, problem, device);
  EXPECT_TRUE(status) << status.sentence;
  EXPECT_TRUE(operands->gemm.d.fetch(device));
  const Matrix d = with_strides(operands->gemm.d.host().view());
  std::vector<std::uint32_t> codes;
  for (std::int64_t r = 0; r < d.rows; ++r) {
    for (std::int64_t n = 0; n < d.cols; ++n) codes.push_back(code_at(d, 0, r, n));
  }
  return codes;
}

// A row keeps its bits whatever other rows there are and however they are routed, when the caller asks for it.
inline void expect_rows_do_not_depend_on_grouping(GemmCase gemm, const Device& device) {
  gemm.batch_invariant = true;
  SCOPED_TRACE(gemm.label());
  std::vector<RoutedRow> rows;
  for (std::int32_t i = 0; i < 60; ++i) rows.push_back({i * 7 % 16, i * 5 % 11 < 9 ? i % 2 : 2});
  const auto mixed = routed_codes(gemm, rows, Routing::Kind::row_groups, device);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a].group < rows[b].group; });
  std::vector<RoutedRow> sorted;
  for (const std::size_t i : order) sorted.push_back(rows[i]);
  const auto by_offsets = routed_codes(gemm, sorted, Routing::Kind::end_offsets, device);
  const auto row_of = [&](const std::vector<std::uint32_t>& codes, std::size_t row) {
    const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(row) * gemm.n;
    return std::vector<std::uint32_t>(begin, begin + gemm.n);
  };
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(row_of(by_offsets, i), row_of(mixed, order[i])) << "row " << order[i];
  for (std::size_t i = 0; i < rows.size(); i += 13) {
    EXPECT_EQ(routed_codes(gemm, {rows[i]}, Routing::Kind::row_groups, device), row_of(mixed, i)) << "row " << i << " alone";
  }
}

}  // namespace finescale::test
