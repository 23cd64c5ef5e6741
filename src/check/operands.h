// Seeded random operands of any format and layout, the same on every machine: each number is a hash of (seed, index).
#pragma once

#include "check/owned_matrix.h"

#include <finescale/matrix.h>

#include <cstdint>
#include <span>

namespace finescale {

// 64 well-mixed bits of (seed, index): splitmix64's finaliser over the pair.
constexpr std::uint64_t hash_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = (seed + 1) * 0x9E3779B97F4A7C15u + (index + 1) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}
// Uniform in [0, 1).
constexpr double hash_unit(std::uint64_t seed, std::uint64_t index) { return static_cast<double>(hash_bits(seed, index) >> 11) * 0x1p-53; }

enum class Values {
  usual,  // plain: bell-shaped around 0, deviation 1; codes: every finite one; scales near 1, globals near 2^-7
  wide,   // plain: exponents -20..20; scales over the finite codes (E8M0, FP32: 2^-20..2^20), zero and subnormals too
};

// Writes codes, block scales and global scales; padding is not touched. `padded_rows` gives, for scale_128x4_per_group, the
// padded row of each row; empty: the row itself.
void fill_random(const MutableMatrix& matrix, std::uint64_t seed, Values values = Values::usual,
                 std::span<const std::int64_t> padded_rows = {});

// make() and fill_random() in one.
Result<OwnedMatrix> random_matrix(const Matrix& tags, std::uint64_t seed, Values values = Values::usual);

}  // namespace finescale
