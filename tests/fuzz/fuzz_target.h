// What every fuzz target offers: libFuzzer's entry. replay_main.cc calls it over a corpus, so that each corpus is also a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

// A property that every input must have.
#define FINESCALE_FUZZ_EXPECT(condition) \
  do {                                   \
    if (!(condition)) std::abort();      \
  } while (false)
