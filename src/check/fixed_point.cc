#include "check/fixed_point.h"

#include <finescale/status.h>

#include <bit>
#include <cmath>
#include <limits>

namespace finescale {

SplitDouble split(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

void FixedPoint::add(Uint128 magnitude, int exponent) {
  int bit = exponent - kLowestExponent;
  if (bit < 0) {  // only trailing zeros of the magnitude lie below the unit
    magnitude >>= -bit;
    bit = 0;
  }
  const int first = bit / 64, offset = bit % 64;
  const std::uint64_t low = static_cast<std::uint64_t>(magnitude), high = static_cast<std::uint64_t>(magnitude >> 64);
  const std::uint64_t parts[3] = {low << offset, offset == 0 ? high : (high << offset) | (low >> (64 - offset)),
                                  offset == 0 ? 0 : high >> (64 - offset)};
  FINESCALE_ASSERT(first + 2 < kWords);
  std::uint64_t carry = 0;
  for (int i = 0; i < 3; ++i) {
    const Uint128 sum = static_cast<Uint128>(words_[first + i]) + parts[i] + carry;
    words_[first + i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
  for (int i = first + 3; carry != 0 && i < kWords; ++i) carry = ++words_[i] == 0 ? 1 : 0;
}

FixedPoint& FixedPoint::operator+=(const FixedPoint& other) {
  std::uint64_t carry = 0;
  for (int i = 0; i < kWords; ++i) {
    const Uint128 sum = static_cast<Uint128>(words_[i]) + other.words_[i] + carry;
    words_[i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
  return *this;
}

FixedPoint& FixedPoint::operator-=(const FixedPoint& other) {
  std::uint64_t borrow = 0;
  for (int i = 0; i < kWords; ++i) {
    const Uint128 difference = static_cast<Uint128>(words_[i]) - other.words_[i] - borrow;
    words_[i] = static_cast<std::uint64_t>(difference);
    borrow = static_cast<std::uint64_t>(difference >> 64) & 1;
  }
  return *this;
}

FixedPoint& FixedPoint::operator+=(double value) {
  const SplitDouble parts = split(value);
  FixedPoint addend;
  addend.add(static_cast<Uint128>(parts.integer < 0 ? -parts.integer : parts.integer), parts.exponent);
  return parts.integer < 0 ? *this -= addend : *this += addend;
}

FixedPoint& FixedPoint::operator*=(float factor) {
  if (factor == 1.0f) return *this;
  if (factor == 0.0f) return *this = FixedPoint{};
  const bool negative = is_negative() != (factor < 0.0f);
  if (is_negative()) negate();
  const SplitDouble parts = split(std::fabs(factor));
  const int zeros = std::countr_zero(static_cast<std::uint64_t>(parts.integer));
  const auto multiplier = static_cast<std::uint64_t>(parts.integer) >> zeros;
  std::uint64_t carry = 0;
  for (std::uint64_t& word : words_) {
    const Uint128 product = static_cast<Uint128>(word) * multiplier + carry;
    word = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64);
  }
  shift(parts.exponent + zeros);
  if (negative) negate();
  return *this;
}

bool FixedPoint::is_zero() const {
  for (const std::uint64_t word : words_) {
    if (word != 0) return false;
  }
  return true;
}

void FixedPoint::negate() {
  const FixedPoint value = *this;
  *this = FixedPoint{};
  *this -= value;
}

void FixedPoint::shift(int bits) {
  const FixedPoint from = *this;
  const int by = bits < 0 ? -bits : bits, step = by / 64, offset = by % 64;
  for (int i = 0; i < kWords; ++i) {
    const auto word = [&](int index) { return index >= 0 && index < kWords ? from.words_[index] : 0; };
    if (bits >= 0) {
      words_[i] = word(i - step) << offset | (offset == 0 ? 0 : word(i - step - 1) >> (64 - offset));
    } else {
      words_[i] = word(i + step) >> offset | (offset == 0 ? 0 : word(i + step + 1) << (64 - offset));
    }
  }
}

Leading FixedPoint::leading() const {
  FixedPoint value = *this;
  if (is_negative()) value.negate();
  int top = kWords - 1;
  while (top >= 0 && value.words_[top] == 0) --top;
  if (top < 0) return {};
  const int zeros = std::countl_zero(value.words_[top]);
  const std::uint64_t below = top > 0 ? value.words_[top - 1] : 0;
  Leading result{is_negative(), true, value.words_[top] << zeros | (zeros == 0 ? 0 : below >> (64 - zeros)),
                 kLowestExponent + top * 64 - zeros};
  result.exact = top == 0 || (zeros == 0 ? below == 0 : below << zeros == 0);
  for (int i = 0; i + 1 < top; ++i) result.exact = result.exact && value.words_[i] == 0;
  return result;
}

double FixedPoint::rounded_to_odd() const {
  const Leading top = leading();
  if (top.significand == 0) return 0.0;
  const int subnormal = -1074 - (top.exponent + 11);  // bits that a subnormal double has less
  const int drop = subnormal > 0 ? std::min(11 + subnormal, 63) : 11;
  std::uint64_t kept = top.significand >> drop;
  if (kept << drop != top.significand || !top.exact || 11 + subnormal > 63) kept |= 1;
  double value = std::ldexp(static_cast<double>(kept), subnormal > 0 ? -1074 : top.exponent + drop);
  if (value > std::numeric_limits<double>::max()) value = std::numeric_limits<double>::max();
  return top.negative ? -value : value;
}

}  // namespace finescale
