#include "check/sample.h"

#include "check/operands.h"

#include <algorithm>
#include <unordered_set>

namespace finescale {
namespace {

// Units along one side next to a border of tiles: first and last, and the units of rows m * tile - 1, m * tile, m * tile + 1;
// coarse tiles first. A unit appears once.
std::vector<std::int64_t> edges(std::int64_t units, std::int64_t unit, std::int64_t limit) {
  std::vector<std::int64_t> found{0, units - 1};
  std::unordered_set<std::int64_t> seen(found.begin(), found.end());
  for (const std::int64_t tile : {128, 64, 16}) {
    for (std::int64_t border = tile; border <= units * unit && static_cast<std::int64_t>(found.size()) < limit; border += tile) {
      for (const std::int64_t row : {border - 1, border, border + 1}) {
        const std::int64_t at = row / unit;
        if (at < units && seen.insert(at).second) found.push_back(at);
      }
    }
  }
  return found;
}

}  // namespace

std::vector<Unit> sample_units(const UnitGrid& grid, std::int64_t count, std::uint64_t seed) {
  std::vector<Unit> units;
  if (grid.size() == 0) return units;
  count = std::clamp<std::int64_t>(count, 1, grid.size());
  const auto random = [&](std::uint64_t index, std::int64_t below) {
    return static_cast<std::int64_t>(hash_bits(seed, index) % static_cast<std::uint64_t>(below));
  };
  for (const std::int64_t batch : {std::int64_t{0}, grid.batches - 1}) {
    for (const std::int64_t row : {std::int64_t{0}, grid.rows - 1}) {
      for (const std::int64_t col : {std::int64_t{0}, grid.cols - 1}) units.push_back({batch, row, col});
    }
  }
  const auto rows = edges(grid.rows, grid.unit_rows, count), cols = edges(grid.cols, grid.unit_cols, count);
  const std::size_t longer = std::max(rows.size(), cols.size()), shorter = std::min(rows.size(), cols.size());
  for (std::size_t i = 0; i < longer; ++i) {  // each edge row and each edge column, in turning pairs
    const std::size_t turned = (i + i / shorter) % shorter;
    const bool more_rows = rows.size() >= cols.size();
    units.push_back({random(i, grid.batches), rows[more_rows ? i : turned], cols[more_rows ? turned : i]});
  }
  for (std::int64_t i = static_cast<std::int64_t>(units.size()); i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(i) * 4;
    units.push_back({random(index + 1, grid.batches), random(index + 2, grid.rows), random(index + 3, grid.cols)});
  }
  if (static_cast<std::int64_t>(units.size()) > count) units.resize(static_cast<std::size_t>(count));
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

}  // namespace finescale
