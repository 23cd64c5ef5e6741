// The rules on a grouped product and on the values of its routing, one broken at a time.
#include "support/grouped_gemm_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace finescale::test {
namespace {

using testing::HasSubstr;

Execution cpu_execution() {
  static const GuardedBuffer scratch(1 << 20);
  Execution execution{.device = &cpu_device()};
  execution.workspace = {scratch.data(), scratch.bytes(), nullptr, 0};
  return execution;
}

// Three groups of 2, 0 and 4 rows and a row of none.
struct Routed {
  explicit Routed(Routing::Kind kind, std::int64_t tokens = 0, bool summed = false) {
    c.kind = kind;
    c.tokens = tokens;
    c.summed = summed;
    tags = grouped_tags(c);
    operands = make_grouped_operands(c, tags, cpu_device());
    problem = grouped_problem(tags, operands);
  }
  std::int32_t* index() const { return reinterpret_cast<std::int32_t*>(operands.index.data()); }
  std::int32_t* gather() const { return reinterpret_cast<std::int32_t*>(operands.gather.data()); }

  GroupedCase c{.gemm = {.n = 8, .k = 32}, .sizes = {2, 0, 4}, .tail = 1};
  GroupedGemmProblem tags;
  GroupedOperands<OwnedMatrix, GuardedBuffer> operands;
  GroupedGemmProblem problem;
};

void expect_refused(const Routed& routed, const std::string& sentence) {
  SCOPED_TRACE(sentence);
  const Status status = grouped_gemm(routed.problem, cpu_execution());
  EXPECT_EQ(status.code, Code::invalid_argument) << status.sentence;
  EXPECT_THAT(status.sentence, HasSubstr(sentence));
  const GuardedBuffer& d = routed.operands.gemm.d.data();
  for (std::int64_t i = 0; i < d.bytes(); ++i) ASSERT_EQ(d.data()[i], std::byte{0xFF}) << "something was written";
}

struct Rule {
  const char* sentence;
  Routing::Kind kind;
  void (*break_it)(GroupedGemmProblem&);
  std::int64_t tokens = 0;
  bool summed = false;
};

constexpr auto kGroups = Routing::Kind::row_groups, kEnds = Routing::Kind::end_offsets, kZero = Routing::Kind::offsets_from_zero,
               kCounts = Routing::Kind::counts;

constexpr Rule kRules[] = {
    {"routing.kind = 9: is not a known kind", kEnds, [](GroupedGemmProblem& p) { p.routing.kind = static_cast<Routing::Kind>(9); }},
    {"routing.index_length = 4: must be 3, the number of groups", kEnds, [](GroupedGemmProblem& p) { p.routing.index_length = 4; }},
    {"routing.index_length = 3: must be 4, the number of groups and one", kZero, [](GroupedGemmProblem& p) { p.routing.index_length = 3; }},
    {"routing.index_length = 6: must be 7, M", kGroups, [](GroupedGemmProblem& p) { p.routing.index_length = 6; }},
    {"routing.index_length = 2: must be 3, the number of groups", kCounts, [](GroupedGemmProblem& p) { p.routing.index_length = 2; }},
    {"routing.expected_rows = -1: must not be negative", kEnds, [](GroupedGemmProblem& p) { p.routing.expected_rows = -1; }},
    {"routing.gather_length = 5: must be 0: with counts", kCounts, [](GroupedGemmProblem& p) { p.routing.gather_length = 5; }},
    {"routing.summed_rows = 3: needs gather", kEnds, [](GroupedGemmProblem& p) { p.routing.summed_rows = 3; }},
    {"gemm.d.rows = 7: must be 5, M, the grouped rows", kEnds, [](GroupedGemmProblem& p) { p.gemm.a.rows = 5; }},
    {"gemm.d.rows = 5: must be 7, M, the grouped rows", kEnds, [](GroupedGemmProblem& p) { p.gemm.d.rows = 5; }},
    {"gemm.d.batch = 2: must be 1", kEnds, [](GroupedGemmProblem& p) { p.gemm.d.batch = 2; }},
    {"gemm.d.batch = 2: must be 3, the number of groups", kCounts, [](GroupedGemmProblem& p) { p.gemm.d.batch = 2; }},
    {"gemm.a.batch = 2: must be 3, the batches of d", kCounts, [](GroupedGemmProblem& p) { p.gemm.a.batch = 2; }},
    {"gemm.b.cols = 16: must be 32, K", kEnds, [](GroupedGemmProblem& p) { p.gemm.b.cols = 16; }},
    {"gemm.epilogue.bias.batch = 1: must be 3, the number of groups", kEnds,
     [](GroupedGemmProblem& p) { p.gemm.epilogue.bias = {.format = kF32, .rows = 1, .cols = 8}; }},
    {"gemm.a.scale_layout = scale_128x4_per_group: needs", kGroups,
     [](GroupedGemmProblem& p) { p.gemm.a.format = kNvfp4, p.gemm.a.scale_layout = ScaleLayout::scale_128x4_per_group; }},
    {"gemm.a.scale_layout = scale_128x4_per_group: needs", kEnds,
     [](GroupedGemmProblem& p) { p.gemm.a.format = kNvfp4, p.gemm.a.scale_layout = ScaleLayout::scale_128x4_per_group; }, 4},
    {"gemm.a.rows = 5: must be 4, summed_rows", kEnds, [](GroupedGemmProblem& p) { p.gemm.a.rows = 5; }, 4, true},
    {"gemm.epilogue.residual.format = f32: must not be set where rows are summed", kEnds,
     [](GroupedGemmProblem& p) { p.gemm.epilogue.residual = {.format = kF32, .rows = 4, .cols = 8}; }, 4, true},
    {"routing.index is null", kEnds, [](GroupedGemmProblem& p) { p.routing.index = nullptr; }},
    {"routing.gather is null", kEnds, [](GroupedGemmProblem& p) { p.routing.gather = nullptr; }, 4},
    {"routing.weight is set: summed_rows = 0", kEnds,
     [](GroupedGemmProblem& p) { p.routing.weight = p.gemm.b.global = reinterpret_cast<const float*>(p.routing.index); }},
};

TEST(ValidateGrouped, every_rule_names_the_argument_and_writes_nothing) {
  for (const Rule& rule : kRules) {
    Routed routed(rule.kind, rule.tokens, rule.summed);
    rule.break_it(routed.problem);
    expect_refused(routed, rule.sentence);
  }
}

struct BadEntry {
  Routing::Kind kind;
  std::int64_t position;
  std::int32_t value;
  const char* rule;
};

constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max(), kTiny = std::numeric_limits<std::int32_t>::min();

constexpr BadEntry kBadEntries[] = {
    {kGroups, 0, 3, "a group is -1 (none) or 0 to 2"},
    {kGroups, 6, -2, "a group is -1 (none) or 0 to 2"},
    {kGroups, 3, kHuge, "a group is -1 (none) or 0 to 2"},
    {kGroups, 3, kTiny, "a group is -1 (none) or 0 to 2"},
    {kEnds, 0, -1, "an offset is at least the one before, 0"},
    {kEnds, 1, 1, "an offset is at least the one before, 2"},
    {kEnds, 2, 8, "and at most M = 7"},
    {kEnds, 2, kHuge, "and at most M = 7"},
    {kZero, 0, 1, "the first offset is 0"},
    {kZero, 2, 1, "an offset is at least the one before, 2"},
    {kZero, 3, 8, "and at most M = 7"},
    {kCounts, 1, -1, "a count is 0 to max_m = 5"},
    {kCounts, 2, 6, "a count is 0 to max_m = 5"},
};

TEST(ValidateGrouped, bad_routing_gives_position_and_value_and_writes_nothing) {
  for (const BadEntry& entry : kBadEntries) {
    Routed routed(entry.kind);
    routed.index()[entry.position] = entry.value;
    expect_refused(routed, "routing.index[" + std::to_string(entry.position) + "] = " + std::to_string(entry.value) + ": ");
    EXPECT_THAT(grouped_gemm(routed.problem, cpu_execution()).sentence, HasSubstr(entry.rule));
    Routed good(entry.kind);
    EXPECT_TRUE(grouped_gemm(good.problem, cpu_execution())) << "usable afterwards";
  }
}

TEST(ValidateGrouped, a_bad_gather_entry_counts_only_where_the_row_has_a_group) {
  for (const Routing::Kind kind : {kGroups, kEnds, kZero}) {
    for (const std::int32_t bad : {4, -1, kHuge}) {
      Routed routed(kind, 4);
      routed.gather()[6] = bad;  // the row of no group
      EXPECT_TRUE(grouped_gemm(routed.problem, cpu_execution()));
      Routed other(kind, 4);
      other.gather()[5] = bad;
      expect_refused(other, "routing.gather[5] = " + std::to_string(bad) + ": must name one of the 4 rows of gemm.a");
    }
  }
}

}  // namespace
}  // namespace finescale::test
