// Routing: which row of a grouped product belongs to which group. Every kernel, the reference and the oracle read a Routing
// through these functions. They read the index arrays, so they run where those lie; strides must be filled in.
//
// A grouped row i is one of the M rows that the routing speaks of. Routing::Kind::counts: row r of batch g is i = g * max_m + r.
// Bad entries (docs/products.md) never lead out of bounds: a bad id or gather entry belongs to one row, a bad offset or count to all.
#pragma once

#include <finescale/grouped_gemm.h>

#include <cstdint>

namespace finescale {

inline constexpr std::int64_t kNoGroup = -1;   // the row is written as zeros
inline constexpr std::int64_t kBadGroup = -2;  // its id or its gather entry is out of range: the row is written as NaN

struct RowRange {
  std::int64_t begin = 0, end = 0;
};

// Where a grouped row is read and written.
struct GroupedRow {
  std::int64_t group = kNoGroup;
  std::int64_t a_batch = 0, a_row = 0;  // of A; meaningful for a real row only
  std::int64_t d_batch = 0, d_row = 0;  // of D, where nothing is summed
};

FINESCALE_HD constexpr bool has_offsets(const Routing& routing) {
  return routing.kind == Routing::Kind::end_offsets || routing.kind == Routing::Kind::offsets_from_zero;
}
FINESCALE_HD constexpr bool is_gathered(const Routing& routing) { return routing.gather_length != 0; }
FINESCALE_HD constexpr bool is_summed(const Routing& routing) { return routing.summed_rows != 0; }

FINESCALE_HD constexpr std::int64_t groups_of(const GroupedGemmProblem& problem) { return problem.gemm.b.batch; }

// M. counts: groups * max_m.
FINESCALE_HD constexpr std::int64_t grouped_rows(const GroupedGemmProblem& problem) {
  if (problem.routing.kind == Routing::Kind::counts) return problem.gemm.a.batch * problem.gemm.a.rows;
  return is_gathered(problem.routing) ? problem.routing.gather_length : problem.gemm.a.rows;
}

// Entries that `index` must have.
FINESCALE_HD constexpr std::int64_t index_entries(const GroupedGemmProblem& problem) {
  switch (problem.routing.kind) {
    case Routing::Kind::row_groups: return grouped_rows(problem);
    case Routing::Kind::offsets_from_zero: return groups_of(problem) + 1;
    case Routing::Kind::end_offsets:
    case Routing::Kind::counts: break;
  }
  return groups_of(problem);
}

// Offset routing: the first row of group g and the one after its last.
FINESCALE_HD inline RowRange offset_range(const Routing& routing, std::int64_t group) {
  if (routing.kind == Routing::Kind::offsets_from_zero) return {routing.index[group], routing.index[group + 1]};
  return {group == 0 ? 0 : routing.index[group - 1], routing.index[group]};
}

// Is index[position] against the rule of its kind: an id outside -1 .. G-1; an offset that falls, is negative, passes M or
// (offsets_from_zero, position 0) is not 0; a count that is negative or over max_m.
FINESCALE_HD inline bool is_bad_entry(const GroupedGemmProblem& problem, std::int64_t position) {
  const Routing& routing = problem.routing;
  const std::int64_t value = routing.index[position];
  if (routing.kind == Routing::Kind::row_groups) return value < kNoGroup || value >= groups_of(problem);
  if (routing.kind == Routing::Kind::counts) return value < 0 || value > problem.gemm.a.rows;
  if (routing.kind == Routing::Kind::offsets_from_zero && position == 0) return value != 0;
  const std::int64_t before = position == 0 ? 0 : routing.index[position - 1];
  return value < before || value > grouped_rows(problem);
}

// A gather entry must name a row of A. Only those of real rows are read.
FINESCALE_HD inline bool is_bad_gather(const GroupedGemmProblem& problem, std::int64_t row) {
  const std::int64_t from = problem.routing.gather[row];
  return from < 0 || from >= problem.gemm.a.rows;
}

// The group whose rows hold grouped row i, by its routing alone: kNoGroup or kBadGroup where there is none. Offsets take a
// binary search for the first group that ends after i, so that empty groups are passed over.
FINESCALE_HD inline std::int64_t group_of(const GroupedGemmProblem& problem, std::int64_t row) {
  const Routing& routing = problem.routing;
  if (routing.kind == Routing::Kind::row_groups) return is_bad_entry(problem, row) ? kBadGroup : routing.index[row];
  if (routing.kind == Routing::Kind::counts) {
    const std::int64_t group = row / problem.gemm.a.rows;
    return row % problem.gemm.a.rows < routing.index[group] ? group : kNoGroup;
  }
  std::int64_t low = 0, high = groups_of(problem);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (offset_range(routing, middle).end > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low < groups_of(problem) ? low : kNoGroup;
}

FINESCALE_HD inline GroupedRow grouped_row(const GroupedGemmProblem& problem, std::int64_t row) {
  GroupedRow at{group_of(problem, row), 0, row, 0, row};
  if (problem.routing.kind == Routing::Kind::counts) {
    at.a_batch = at.d_batch = row / problem.gemm.a.rows;
    at.a_row = at.d_row = row % problem.gemm.a.rows;
  } else if (at.group >= 0 && is_gathered(problem.routing)) {
    if (is_bad_gather(problem, row)) return {kBadGroup, 0, 0, 0, row};
    at.a_row = problem.routing.gather[row];
  }
  return at;
}

// The factor of a grouped row in a weighted sum; without weights, 1.
FINESCALE_HD inline float weight_of(const Routing& routing, std::int64_t row) {
  return routing.weight != nullptr ? routing.weight[row] : 1.0f;
}

// scale_128x4_per_group (offset routing): rows of the scale tiles before those of group g, each earlier group padded to 128.
FINESCALE_HD inline std::int64_t padded_group_start(const Routing& routing, std::int64_t group) {
  std::int64_t start = 0;
  for (std::int64_t earlier = 0; earlier < group; ++earlier) {
    const RowRange rows = offset_range(routing, earlier);
    start += round_up(rows.end - rows.begin, 128);
  }
  return start;
}

// The row by which a scale of `matrix` (A or D) is addressed (access.h): `matrix_row`, but under scale_128x4_per_group that row
// counted with every earlier group padded. There a row of no group has no scale: group >= 0.
FINESCALE_HD inline std::int64_t scale_row_of(const GroupedGemmProblem& problem, const Matrix& matrix, std::int64_t group,
                                              std::int64_t matrix_row) {
  if (matrix.scale_layout != ScaleLayout::scale_128x4_per_group) return matrix_row;
  return padded_group_start(problem.routing, group) + matrix_row - offset_range(problem.routing, group).begin;
}

}  // namespace finescale
