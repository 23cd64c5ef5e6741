// Elements of at most 8 bits by table: what the portable leaves decode with, and block scales everywhere outside a tuned leaf.
#pragma once

#include <finescale/formats/element.h>

#include <array>
#include <cstdint>

namespace finescale::cpu {

template <class Encoding, int kCodes>
constexpr std::array<float, kCodes> decode_table() {
  std::array<float, kCodes> table{};
  for (int code = 0; code < kCodes; ++code) table[code] = Encoding::decode(static_cast<std::uint32_t>(code));
  return table;
}

inline constexpr auto kE2M1Values = decode_table<E2M1, 16>();
inline constexpr auto kE4M3Values = decode_table<E4M3, 256>();
inline constexpr auto kE5M2Values = decode_table<E5M2, 256>();
inline constexpr auto kE8M0Values = decode_table<E8M0, 256>();

// The table of an element; null for f32, f16, bf16 and none.
constexpr const float* decode_table(Element element) {
  switch (element) {
    case Element::e2m1: return kE2M1Values.data();
    case Element::e4m3: return kE4M3Values.data();
    case Element::e5m2: return kE5M2Values.data();
    case Element::e8m0: return kE8M0Values.data();
    default: return nullptr;
  }
}

}  // namespace finescale::cpu
