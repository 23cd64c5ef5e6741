// Storing runs of FP32 values as part of D: rounded once to a plain element, or quantized block by block (profile finescale,
// max scales).
#pragma once

#include <finescale/matrix.h>

#include <cstdint>
#include <functional>

namespace finescale::cpu {

// Plain D: values of row (batch, row), columns first .. first + count - 1.
void store_run(const MutableMatrix& d, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t count, const float* values);

// Rows of blocks of D: `rows` rows from (batch, row) on, which share their blocks; scale_row addresses their scales, -1: none.
struct BlockRows {
  std::int64_t batch, row, rows, scale_row;
};

// Zeros in the high nibble after an odd number of 4-bit codes.
void zero_unused_nibbles(const MutableMatrix& d, const BlockRows& at);

// Block-format D: columns first .. first + count - 1, whole blocks but for the last of the row. values(r, col, n, out) gives n
// values of row `row + r` from column col on, at most 512; it is called more than once.
using ValueRun = std::function<void(std::int64_t r, std::int64_t col, std::int64_t n, float* out)>;
void quantize_run(const MutableMatrix& d, const BlockRows& at, std::int64_t first, std::int64_t count, const ValueRun& values);

}  // namespace finescale::cpu
