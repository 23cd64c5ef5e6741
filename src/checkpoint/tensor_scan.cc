#include "checkpoint/tensor_scan.h"

#include <algorithm>
#include <cstring>

namespace finescale::checkpoint {
namespace {

// Magnitudes of IEEE-like codes are ordered as the codes are without their sign, so the pass compares integers.
template <class Word>
ElementFacts scan_words(Element element, Word infinity, std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = 4096;
  constexpr Word kMagnitude = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1);
  Word words[kPiece];
  ElementFacts facts;
  Word largest = 0;
  for (std::size_t start = 0; start < bytes.size() / sizeof(Word); start += kPiece) {
    const std::size_t count = std::min(kPiece, bytes.size() / sizeof(Word) - start);
    std::memcpy(words, bytes.data() + start * sizeof(Word), count * sizeof(Word));
    Word nonfinite = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Word magnitude = words[i] & kMagnitude;
      const bool finite = magnitude < infinity;
      largest = std::max(largest, finite ? magnitude : Word{0});
      nonfinite = static_cast<Word>(nonfinite + (finite ? 0 : 1));
    }
    if (nonfinite != 0 && facts.first_nonfinite < 0) {
      const Word* first = std::find_if(words, words + count, [&](Word word) { return (word & kMagnitude) >= infinity; });
      facts.first_nonfinite = static_cast<std::int64_t>(start) + (first - words);
    }
    facts.nonfinite += nonfinite;
  }
  facts.amax = decode(element, largest);
  return facts;
}

}  // namespace

ElementFacts scan_elements(Dtype dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case Dtype::f32: return scan_words<std::uint32_t>(Element::f32, 0x7F800000u, bytes);
    case Dtype::f16: return scan_words<std::uint16_t>(Element::f16, 0x7C00u, bytes);
    case Dtype::bf16: return scan_words<std::uint16_t>(Element::bf16, 0x7F80u, bytes);
    default: return {};
  }
}

}  // namespace finescale::checkpoint
