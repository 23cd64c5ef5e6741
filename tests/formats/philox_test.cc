// Philox4x32-10: the published known answers, and which word belongs to which element.
#include <finescale/formats/philox.h>

#include <gtest/gtest.h>

#include <cstdint>

namespace finescale {
namespace {

TEST(Philox, gives_the_published_answers) {  // Random123 kat_vectors
  constexpr struct {
    PhiloxWords counter;
    PhiloxKey key;
    PhiloxWords answer;
  } kRows[] = {
      {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}, {{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}}},
      {{{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}}, {{0xA4093822, 0x299F31D0}}, {{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}},
  };
  for (const auto& row : kRows) EXPECT_EQ(philox4x32_10(row.counter, row.key), row.answer);
}

// Made with ten lines of Python integers from the published definition: counter = element / 4, word = element % 4, key = seed.
TEST(Philox, gives_each_element_its_word) {
  constexpr struct {
    std::uint64_t seed, element;
    std::uint32_t word;
  } kRows[] = {
      {0x0ULL, 0ULL, 0x6627E8D5u},
      {0x0ULL, 1ULL, 0xE169C58Du},
      {0x0ULL, 2ULL, 0xBC57AC4Cu},
      {0x0ULL, 3ULL, 0x9B00DBD8u},
      {0x0ULL, 4ULL, 0xF8E4CCA4u},
      {0x1ULL, 0ULL, 0xE3E80670u},
      {0x100000000ULL, 0ULL, 0xFDDE3E0Bu},
      {0x123456789ABCDEFULL, 12345ULL, 0x0A0D96DEu},
      {0x123456789ABCDEFULL, 17179869191ULL, 0x5CB4C92Au},
      {0xFFFFFFFFFFFFFFFFULL, 18446744073709551615ULL, 0x3915061Cu},
      {0x2AULL, 17179869184ULL, 0x42E0B8B3u},
  };
  for (const auto& row : kRows) EXPECT_EQ(philox_word(row.seed, row.element), row.word) << row.seed << " " << row.element;
}

TEST(Philox, words_are_even) {  // mean and each bit over 65,536 words, six standard deviations
  constexpr int kWords = 1 << 16;
  int ones[32] = {};
  for (std::uint64_t element = 0; element < kWords; ++element) {
    const std::uint32_t word = philox_word(7, element);
    for (int bit = 0; bit < 32; ++bit) ones[bit] += word >> bit & 1;
  }
  for (const int count : ones) EXPECT_NEAR(count, kWords / 2, 6 * 128);
}

}  // namespace
}  // namespace finescale
