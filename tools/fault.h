// Faults to plant, so that check can be seen to find them: --inject scale|code|tile.
//
// A product gets its fault in an operand that the kernel reads and the oracle does not. The site is chosen from the seed
// among those whose exact effect on an output exceeds twice the bound there: a check that misses it is wrong.
// A conversion gets it in its output, where any change of a value counts.
#pragma once

#include "op_operands.h"

#include <finescale/check.h>

#include <cstdint>
#include <string>

namespace finescale::tools {

enum class FaultKind { none, scale, code, tile };

// Puts a copy of one operand, with the fault in it, in its place in `faulty`, which begins as `problem`. `clean` is D as the
// kernel makes it of `problem`. Returns a sentence that says where the fault is. invalid_argument: there is no such site.
Result<std::string> plant_fault(FaultKind kind, const GemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GemmProblem& faulty);
Result<std::string> plant_fault(FaultKind kind, const GroupedGemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GroupedGemmProblem& faulty);

// Changes an output in host memory.
Result<std::string> plant_in_output(FaultKind kind, const MutableMatrix& output, std::uint64_t seed);

// The rows and columns of a tile fault: a tile of codes that reads as zeros.
inline constexpr std::int64_t kTileRows = 16, kTileCols = 64;

// A change of a matrix: a code, a block scale (or, where the format has none, the global scale), or a tile of codes.
struct Change {
  FaultKind kind = FaultKind::none;
  std::int64_t batch = 0, row = 0, col = 0;
  std::uint32_t bits = 0;  // code: the new code

  // `row` of the matrix that it is made in; a scale's row is the block row that covers it.
  void make(const MutableMatrix& matrix) const;
  // The same change as one row sees it, that row alone being row 0 of `copy`.
  Change seen_by_one_row() const;
};

}  // namespace finescale::tools
