// Which outputs are judged. D is cut into units of one block each (one output where D has no blocks), since a block scale is
// right or wrong for all of its elements.
#pragma once

#include <cstdint>
#include <vector>

namespace finescale {

struct UnitGrid {
  std::int64_t batches = 0, rows = 0, cols = 0;  // units
  std::int64_t unit_rows = 1, unit_cols = 1;     // outputs of a unit
  std::int64_t size() const { return batches * rows * cols; }
};

struct Unit {
  std::int64_t batch = 0, row = 0, col = 0;
  auto operator<=>(const Unit&) const = default;
};

// At most `count` units, at least one of a grid that is not empty, sorted and each once: the corners; then every row and
// column next to a border of tiles of 128, 64 and 16, and the last of each; then seeded random ones.
std::vector<Unit> sample_units(const UnitGrid& grid, std::int64_t count, std::uint64_t seed);

}  // namespace finescale
