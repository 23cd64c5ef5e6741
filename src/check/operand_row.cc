#include "check/operand_row.h"

#include "check/error_model.h"

#include <finescale/access.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace finescale {
namespace {

constexpr int kFittingBits = 61;  // two such integers, sixteen times: 126 bits

struct BitRange {
  int low = std::numeric_limits<int>::max(), high = std::numeric_limits<int>::min();
};

// The exponents of the lowest and one past the highest bit that any value of the chunk has. Values are 0 or normal doubles.
BitRange bit_range(const double* values, std::int64_t count) {
  BitRange range;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(values[i]);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
    if (values[i] == 0.0) continue;
    range.low = std::min(range.low, exponent - (fraction == 0 ? 0 : 52 - std::countr_zero(fraction)));
    range.high = std::max(range.high, exponent + 1);
  }
  return range;
}

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

void note_factor(double factor, double& least, double& most) {
  const double magnitude = std::fabs(factor);
  if (magnitude != 0) least = std::min(least, magnitude);
  most = std::max(most, magnitude);
}

void form_chunks(OperandRow& row) {
  const auto cols = static_cast<std::int64_t>(row.value.size());
  const std::int64_t chunks = ceil_div(cols, kChunk);
  row.integer.assign(static_cast<std::size_t>(chunks * kChunk), 0);
  row.exponent.assign(static_cast<std::size_t>(chunks), 0);
  row.fits.assign(static_cast<std::size_t>(chunks), true);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = chunk * kChunk, count = std::min(kChunk, cols - first);
    const BitRange range = bit_range(&row.value[first], count);
    if (range.low > range.high) continue;  // all zero
    row.fits[chunk] = range.high - range.low <= kFittingBits;
    row.exponent[chunk] = range.low;
    if (!row.fits[chunk]) continue;
    const double to_integer = power_of_two(-range.low);
    for (std::int64_t i = 0; i < count; ++i) row.integer[first + i] = static_cast<std::int64_t>(row.value[first + i] * to_integer);
  }
}

// NaN and Inf: the class of the IEEE sum, whatever its order. Doubles hold every finite product without overflow.
double special_sum(const OperandRow& a, const OperandRow& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.value.size(); ++k) {
    const double product = a.value[k] * b.value[k];
    if (!std::isfinite(product)) sum += product;
  }
  return sum;
}

double magnitude_sum(const OperandRow& a, const OperandRow& b) {
  const std::size_t count = a.value.size();
  double lanes[4] = {};
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] += std::fabs(a.value[k + lane] * b.value[k + lane]);
  }
  for (; k < count; ++k) lanes[0] += std::fabs(a.value[k] * b.value[k]);
  return (lanes[0] + lanes[1] + lanes[2] + lanes[3]) * (1 + static_cast<double>(count + 8) * 0x1p-53);
}

void add_chunk(const OperandRow& a, const OperandRow& b, std::size_t chunk, ExactSum& sum) {
  const std::size_t first = chunk * kChunk;
  if (a.fits[chunk] && b.fits[chunk]) {
    Int128 dot = 0;
    for (std::size_t i = first; i < first + kChunk; ++i) dot += static_cast<Int128>(a.integer[i]) * b.integer[i];
    sum.add(dot, a.exponent[chunk] + b.exponent[chunk]);
    return;
  }
  for (std::size_t k = first; k < std::min(first + kChunk, a.value.size()); ++k) {
    const SplitDouble x = split(a.value[k]), y = split(b.value[k]);
    sum.add(static_cast<Int128>(x.integer) * y.integer, x.exponent + y.exponent);
  }
}

// A product of some of a term's factors (a, sa, b, sb) is 0 or at least q = least * least. An FP32 sum of such products is 0 or
// at least 2^-24 q, and so it is times the scales that follow. Where 2^-78 <= q every intermediate is thus 0 or at least 2^-102,
// hence a multiple of 2^-125, and so are sums of them: nothing falls below 2^-126. Else a term has at most four intermediates
// that lose nu each (a sa, b sb, their product, the sum), and what is lost grows by the factors that follow.
double underflow_of(const OperandRow& a, const OperandRow& b) {
  if (a.least * b.least >= 0x1p-78) return 0;
  return kFlush * 4 * static_cast<double>(a.value.size()) * a.most * b.most;
}

}  // namespace

OperandRow decode_row(const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row) {
  OperandRow decoded;
  decoded.value.resize(static_cast<std::size_t>(matrix.cols));
  double least_element = 1, least_scale = 1, most_scale = 1, scale = 1;
  for (std::int64_t k = 0; k < matrix.cols; ++k) {
    if (k % matrix.format.block_cols == 0) {
      scale = block_scale_at(matrix, batch, scale_row, k);
      note_factor(scale, least_scale, most_scale);
    }
    const double element = element_at(matrix, batch, row, k);
    note_factor(element, least_element, decoded.most_element);
    const double value = element * scale;
    decoded.value[k] = value;
    decoded.finite = decoded.finite && std::isfinite(value);
    decoded.overflows = decoded.overflows || std::fabs(value) > kLargest;
  }
  decoded.least = least_element * least_scale;
  decoded.most = decoded.most_element * most_scale;
  if (decoded.finite) form_chunks(decoded);
  return decoded;
}

const OperandRow& RowCache::get(int which, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row) {
  const std::int64_t key = (batch * matrix.rows + row) * 2 + which;
  if (const auto found = rows_.find(key); found != rows_.end()) return found->second;
  if (static_cast<std::int64_t>(rows_.size()) >= capacity_) rows_.clear();
  return rows_.emplace(key, decode_row(matrix, batch, row, scale_row)).first->second;
}

ExactDot exact_dot(const OperandRow& a, const OperandRow& b) {
  ExactDot dot;
  dot.finite = a.finite && b.finite;
  if (!dot.finite) {
    dot.special = special_sum(a, b);
    return dot;
  }
  ExactSum sum;
  for (std::size_t chunk = 0; chunk < a.exponent.size(); ++chunk) add_chunk(a, b, chunk, sum);
  dot.sum = sum.total();
  dot.magnitude = magnitude_sum(a, b);
  dot.underflow = underflow_of(a, b);
  const double unscaled = a.most_element * b.most_element * static_cast<double>(a.value.size());
  dot.overflows = a.overflows || b.overflows || std::max(dot.magnitude, unscaled) > kLargest;
  return dot;
}

}  // namespace finescale
