#include "backends/cpu/kernels/roofline_loops.h"

#include <cstring>

namespace finescale::cpu::portable {
namespace {

void read(const std::byte* from, std::int64_t bytes) {
  std::uint64_t seen = 0;
  for (std::int64_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, sizeof word);
    seen |= word;
  }
  volatile std::uint64_t sink = seen;
  static_cast<void>(sink);
}

constexpr int kSums = 32;

// A product and a sum, as the portable kernels have them.
void fma(std::int64_t steps) {
  float sums[kSums];
  volatile float given = 0.5f;
  const float a = given, b = a / 2;
  for (float& sum : sums) sum = given;  // read anew, so that the compiler does not see equal sums and keep one
  for (std::int64_t step = 0; step < steps; ++step) {
    for (float& sum : sums) sum = sum * a + b;
  }
  for (const float sum : sums) given = sum;
}

}  // namespace

const RooflineLoops kRoofline{read, fma, kSums * 2};

}  // namespace finescale::cpu::portable
