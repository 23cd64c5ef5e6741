#include "check/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace finescale {
namespace {

// Barely more units than edges, so that random ones cannot stand in for a missing edge.
TEST(SampleUnits, holds_corners_and_every_tile_edge) {
  for (const bool wide : {true, false}) {
    const UnitGrid grid{2, wide ? 20 : 2000, wide ? 2000 : 20};
    const auto units = sample_units(grid, 400, 1);
    EXPECT_LE(units.size(), 400u);
    EXPECT_GT(units.size(), 380u);
    std::set<std::int64_t> along, across;
    for (const Unit& unit : units) {
      ASSERT_TRUE(unit.batch < grid.batches && unit.row < grid.rows && unit.col < grid.cols);
      along.insert(wide ? unit.col : unit.row);
      across.insert(wide ? unit.row : unit.col);
    }
    for (std::int64_t border = 16; border < 2000; border += 16) {
      for (const std::int64_t at : {border - 1, border, border + 1}) EXPECT_TRUE(at >= 2000 || along.contains(at)) << at;
    }
    for (const std::int64_t at : {0, 15, 16, 17, 19}) EXPECT_TRUE(across.contains(at)) << at;
    EXPECT_TRUE(std::binary_search(units.begin(), units.end(), Unit{1, grid.rows - 1, grid.cols - 1}));
    EXPECT_TRUE(std::binary_search(units.begin(), units.end(), Unit{0, 0, grid.cols - 1}));
  }
}

TEST(SampleUnits, is_seeded_sorted_and_unique) {
  const UnitGrid grid{1, 5000, 5000};
  const auto units = sample_units(grid, 3000, 7);
  EXPECT_EQ(units, sample_units(grid, 3000, 7));
  EXPECT_NE(units, sample_units(grid, 3000, 8));
  EXPECT_TRUE(std::is_sorted(units.begin(), units.end()));
  EXPECT_EQ(std::adjacent_find(units.begin(), units.end()), units.end());
}

TEST(SampleUnits, never_more_than_asked_and_one_at_least) {
  EXPECT_EQ(sample_units({1, 5000, 5000}, 0, 7).size(), 1u);
  EXPECT_LE(sample_units({1, 5000, 5000}, 5, 7).size(), 5u);
  EXPECT_TRUE(sample_units({0, 4, 4}, 5, 7).empty());
  EXPECT_EQ(sample_units({1, 1, 1}, 100, 7).size(), 1u);
}

TEST(SampleUnits, counts_edges_in_outputs_where_units_are_blocks) {
  const auto units = sample_units({1, 40, 64, 1, 16}, 1000, 3);
  std::set<std::int64_t> cols;
  for (const Unit& unit : units) cols.insert(unit.col);
  EXPECT_EQ(cols.size(), 64u);
}

}  // namespace
}  // namespace finescale
