// One row of an operand, decoded exactly, and the exact sum of products of two rows.
//
// A value a * sa has at most 48 significant bits, so a double holds it. Sixteen columns form a chunk; where their values fit
// 61 bits of one common exponent they are kept as integers too, and a chunk's dot product is one 128-bit integer.
#pragma once

#include "check/fixed_point.h"

#include <finescale/matrix.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace finescale {

inline constexpr std::int64_t kChunk = 16;

struct OperandRow {
  std::vector<double> value;          // a[k] * sa, exact; NaN and Inf as IEEE has it
  std::vector<std::int64_t> integer;  // of fitting chunks: value = integer * 2^exponent; padded to whole chunks with 0
  std::vector<int> exponent;          // one a chunk
  std::vector<bool> fits;             // one a chunk
  bool finite = true;
  bool overflows = false;      // some |a * sa| is beyond FP32
  double least = 1, most = 1;  // below and above every factor a, sa and product of them that is not 0, and 1
  double most_element = 1;     // above every |a|, and 1
};

// `scale_row`: the row by which block scales are addressed (routing.h); the row itself but for padded groups.
OperandRow decode_row(const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row);

// Decoded rows of a few matrices, up to a capacity; then it starts over.
class RowCache {
 public:
  explicit RowCache(std::int64_t capacity) : capacity_(capacity) {}
  // The reference holds until the next call. `which` tells apart matrices that share the cache.
  const OperandRow& get(int which, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row);

 private:
  std::int64_t capacity_;
  std::unordered_map<std::int64_t, OperandRow> rows_;
};

// sum over k of a[k] sa b[k] sb.
struct ExactDot {
  FixedPoint sum;        // where `finite`
  double magnitude = 0;  // sum of |a sa b sb|, not below it
  bool finite = true;
  double special = 0;      // else: NaN, Inf or -Inf
  double underflow = 0;    // what products and sums below the smallest normal FP32 may lose
  bool overflows = false;  // a value, the sum, or the sum without scales may leave FP32
};
ExactDot exact_dot(const OperandRow& a, const OperandRow& b);

}  // namespace finescale
