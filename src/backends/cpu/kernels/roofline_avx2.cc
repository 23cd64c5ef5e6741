#include "backends/cpu/kernels/roofline_loops.h"

#include <immintrin.h>

namespace finescale::cpu::avx2 {
namespace {

void read(const std::byte* from, std::int64_t bytes) {
  __m256i a = _mm256_setzero_si256(), b = a;
  for (std::int64_t i = 0; i < bytes; i += 64) {
    a = _mm256_or_si256(a, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    b = _mm256_or_si256(b, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 32)));
  }
  __asm__ volatile("" : : "x"(a), "x"(b));
}

// Twelve independent sums: more than latency times throughput (4 cycles, 2 a cycle) asks for, fewer than there are registers.
constexpr int kSums = 12;

void fma(std::int64_t steps) {
  __m256 sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) {
    sum = _mm256_set1_ps(1.0f);
    __asm__ volatile("" : "+x"(sum));  // else the compiler sees twelve equal sums and keeps one
  }
  __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  __asm__ volatile("" : "+x"(a), "+x"(b));
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "x"(sum));
}

}  // namespace

const RooflineLoops kRoofline{read, fma, kSums * 16};

}  // namespace finescale::cpu::avx2
