// Bit-level helpers that the numeric headers share: constexpr, host and device.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define FINESCALE_HD __host__ __device__
#else
#define FINESCALE_HD
#endif

namespace finescale {

// std::bit_cast is not callable from device code without a compiler switch; the builtin is.
FINESCALE_HD constexpr std::uint32_t float_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }
FINESCALE_HD constexpr float bits_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

FINESCALE_HD constexpr bool is_nan(float value) { return (float_bits(value) & 0x7FFFFFFFu) > 0x7F800000u; }
FINESCALE_HD constexpr bool is_finite(float value) { return (float_bits(value) & 0x7F800000u) != 0x7F800000u; }

FINESCALE_HD constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
FINESCALE_HD constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return ceil_div(value, to) * to; }

}  // namespace finescale
