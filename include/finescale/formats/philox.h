// Philox4x32-10: a counter-based random generator. Four random words are a pure function of a 128-bit counter and a
// 64-bit key, so any element's word is computed alone, on any backend, in any order.
//
// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <finescale/formats/bits.h>

#include <cstdint>

namespace finescale {

struct PhiloxWords {
  std::uint32_t word[4];

  bool operator==(const PhiloxWords&) const = default;
};

struct PhiloxKey {
  std::uint32_t word[2];
};

// Ten rounds; each multiplies two words, mixes in the other two and the key, and the key steps by a Weyl sequence.
FINESCALE_HD constexpr PhiloxWords philox4x32_10(PhiloxWords counter, PhiloxKey key) {
  auto [x0, x1, x2, x3] = counter.word;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * x0, second = std::uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<std::uint32_t>(second >> 32) ^ x1 ^ key.word[0];
    x1 = static_cast<std::uint32_t>(second);
    x2 = static_cast<std::uint32_t>(first >> 32) ^ x3 ^ key.word[1];
    x3 = static_cast<std::uint32_t>(first);
    key.word[0] += 0x9E3779B9u;
    key.word[1] += 0xBB67AE85u;
  }
  return {{x0, x1, x2, x3}};
}

// The random word of one element (docs/formats.md): key = seed, counter = element / 4, word = element % 4.
// `element` is the logical index, (batch * rows + row) * cols + col; low words first.
FINESCALE_HD constexpr std::uint32_t philox_word(std::uint64_t seed, std::uint64_t element) {
  const std::uint64_t counter = element / 4;
  const PhiloxWords words = philox4x32_10({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}},
                                          {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
  return words.word[element % 4];
}

// Known answers published with Random123.
static_assert(philox4x32_10({{0, 0, 0, 0}}, {{0, 0}}) == PhiloxWords{{0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}});
static_assert(philox4x32_10({{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}) == PhiloxWords{{0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}});
static_assert(philox4x32_10({{0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u}}, {{0xA4093822u, 0x299F31D0u}}) ==
              PhiloxWords{{0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}});

}  // namespace finescale
