// Blocks of one quantize problem: where their values come from, and how they become scales and codes.
#pragma once

#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/output_run.h"

#include <finescale/quantize.h>

#include <cstdint>

namespace finescale::cpu {

inline constexpr std::int64_t kSourceCols = 1024;  // most columns of a run: 64 blocks of nvfp4, 4 KiB of values

// The values of one task; rms_norm's factor is kept while a row lasts.
class BlockSource {
 public:
  BlockSource(const Leaves& leaves, const QuantizeProblem& problem) : leaves_(leaves), problem_(problem) {}

  // The produced values of a row, columns first .. first + count - 1: in `buffer`, or where they lie already.
  const float* run(std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count, float* buffer);

  const Leaves& leaves() const { return leaves_; }
  const QuantizeProblem& problem() const { return problem_; }

 private:
  float row_factor(std::int64_t batch, std::int64_t row);

  const Leaves& leaves_;
  const QuantizeProblem& problem_;
  std::int64_t batch_ = -1, row_ = -1;
  float factor_ = 1.0f;
};

// Every block of those rows from column `first` on, whole blocks but for the last of a row.
void quantize_piece(BlockSource& source, const BlockRows& at, std::int64_t first, std::int64_t count);

}  // namespace finescale::cpu
