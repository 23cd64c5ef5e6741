// Faults to plant, so that check can be seen to find them: --inject scale|code|tile.
//
// A product gets its fault in an operand that the kernel reads and the oracle does not. The site is chosen from the seed
// among those whose exact effect on an output exceeds twice the bound there: a check that misses it is wrong.
// A conversion gets it in its output, where any change of a value counts.
#pragma once

#include "op_operands.h"

#include <finescale/kernel.h>

#include <cstdint>
#include <string>
#include <vector>

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

const char* fault_name(FaultKind kind);

// The rows and columns of a tile fault: a tile of codes that reads as zeros.
inline constexpr std::int64_t kTileRows = 16, kTileCols = 64;

// A change of a matrix: a code; a block scale by a factor of two (without block scales the global scale, without that the
// elements of 16 columns); or a tile of codes, which become zeros.
class Change {
 public:
  FaultKind kind = FaultKind::none;
  std::int64_t batch = 0, row = 0, col = 0;
  std::uint32_t new_code = 0;

  void make(const MutableMatrix& matrix);
  // After make(), on the same matrix: as it was.
  void undo(const MutableMatrix& matrix) const;

 private:
  std::int64_t rows() const { return kind == FaultKind::tile ? kTileRows : 1; }
  std::int64_t cols() const { return kind == FaultKind::tile ? kTileCols : kind == FaultKind::code ? 1 : 16; }

  std::vector<std::uint32_t> old_codes_;
  std::uint32_t old_scale_ = 0;
};

}  // namespace finescale::tools
