// FixedPoint: an exact real number, a multiple of 2^-1216 below 2^1343 in magnitude, as one wide two's complement integer.
//
// Wide enough for every product here. A block value a * sa is an element times a block scale, so at worst a product of two
// FP32 numbers: a multiple of 2^-298 below 2^256. A sum of 2^62 products of two of them is a multiple of 2^-596 below 2^574.
// Four FP32 factors more (alpha, both globals, a weight) and 2^62 addends of the last sum: a multiple of 2^-1192 below 2^1148.
#pragma once

#include <cstdint>

namespace finescale {

__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

// |value| = significand * 2^exponent, rounded toward zero; the significand has its top bit set, or is 0 for zero.
struct Leading {
  bool negative = false, exact = true;
  std::uint64_t significand = 0;
  int exponent = 0;
};

class FixedPoint {
 public:
  static constexpr int kWords = 40, kLowestExponent = -1216;

  // this += magnitude * 2^exponent
  void add(Uint128 magnitude, int exponent);
  FixedPoint& operator+=(const FixedPoint& other);
  FixedPoint& operator-=(const FixedPoint& other);
  // Exact. A finite factor; the product must be a multiple of the unit (above).
  FixedPoint& operator*=(float factor);
  // Exact, any finite value that is a multiple of the unit.
  FixedPoint& operator+=(double value);

  bool is_zero() const;
  bool is_negative() const { return (words_[kWords - 1] >> 63) != 0; }
  bool operator==(const FixedPoint&) const = default;

  Leading leading() const;
  // Rounded to odd: toward zero, with the last bit set where that was inexact. Rounding the result to nearest at 51 bits or
  // fewer gives what rounding the exact number once would give.
  double rounded_to_odd() const;

 private:
  void negate();
  void shift(int bits);  // left; negative: right, over zero bits only

  std::uint64_t words_[kWords] = {};  // lowest first
};

// A sum of signed products. Positive and negative ones are kept apart, so that a carry never runs through all words.
struct ExactSum {
  FixedPoint positive, negative;

  void add(Int128 value, int exponent) {
    if (value > 0) positive.add(static_cast<Uint128>(value), exponent);
    if (value < 0) negative.add(-static_cast<Uint128>(value), exponent);
  }
  FixedPoint total() const {
    FixedPoint sum = positive;
    return sum -= negative;
  }
};

// value = integer * 2^exponent, for finite values.
struct SplitDouble {
  std::int64_t integer = 0;
  int exponent = 0;
};
SplitDouble split(double value);

}  // namespace finescale
