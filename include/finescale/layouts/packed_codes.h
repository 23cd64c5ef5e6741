// Codes narrower than a byte share one: 4-bit codes lie two to a byte, the even index in the low nibble
// (CodeLayout::row_major) or in the high one (CodeLayout::high_nibble_first). An unused nibble is written 0.
#pragma once

#include <finescale/formats/bits.h>

#include <cstddef>
#include <cstdint>

namespace finescale {

// Bytes that `count` codes of `bits` bits take from a byte boundary on.
FINESCALE_HD constexpr std::int64_t packed_bytes(std::int64_t count, int bits) { return ceil_div(count * bits, 8); }

// The code of `bits` bits (4, 8, 16 or 32) at `index`, little-endian.
FINESCALE_HD inline std::uint32_t load_code(const std::byte* codes, std::int64_t index, int bits, bool high_nibble_first) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes);
  if (bits == 4) {
    const bool high = ((index & 1) != 0) != high_nibble_first;
    return high ? bytes[index >> 1] >> 4 : bytes[index >> 1] & 0xFu;
  }
  std::uint32_t code = 0;
  for (int byte = 0; byte < bits / 8; ++byte) code |= static_cast<std::uint32_t>(bytes[index * (bits / 8) + byte]) << (8 * byte);
  return code;
}

// Writes it; the other nibble of a shared byte keeps its value.
FINESCALE_HD inline void store_code(std::byte* codes, std::int64_t index, int bits, bool high_nibble_first, std::uint32_t code) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(codes);
  if (bits == 4) {
    const bool high = ((index & 1) != 0) != high_nibble_first;
    std::uint8_t& byte = bytes[index >> 1];
    byte = static_cast<std::uint8_t>(high ? (byte & 0x0Fu) | (code << 4) : (byte & 0xF0u) | (code & 0xFu));
    return;
  }
  for (int byte = 0; byte < bits / 8; ++byte) bytes[index * (bits / 8) + byte] = static_cast<std::uint8_t>(code >> (8 * byte));
}

}  // namespace finescale
