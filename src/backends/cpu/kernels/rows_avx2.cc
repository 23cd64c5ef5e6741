// Rows of codes to FP32 and rows to columns, for AVX2 and F16C: how A and weights that were not prepared enter a product.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

// Eight elements of 8 or more bits from `row`, element i on.
[[gnu::always_inline]] inline __m256 load8(Element element, const unsigned char* row, std::int64_t i) {
  if (element == Element::f32) return _mm256_loadu_ps(reinterpret_cast<const float*>(row) + i);
  if (element == Element::f16) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * i)));
  if (element == Element::bf16) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * i)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  const __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + i)));
  return element == Element::e8m0 ? decode_e8m0(code) : decode8(element, code);
}

template <Element kElement>
std::int64_t decode_wide(const unsigned char* row, std::int64_t first, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, load8(kElement, row, first + i));
  return i;
}

// Eight 4-bit codes of one 32-bit word; element i at bits 4 i, or with the halves of each byte exchanged.
std::int64_t decode_nibbles(const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count, float* out) {
  const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  const __m256i low_first = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), high_first = _mm256_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24);
  const __m256i shifts = high_nibble_first ? high_first : low_first;
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    int word = 0;
    __builtin_memcpy(&word, row + (first + i) / 2, 4);
    const __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts);
    const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(code, 28), _mm256_set1_epi32(static_cast<int>(0x80000000u)));
    const __m256 value = _mm256_xor_ps(_mm256_permutevar8x32_ps(magnitudes, code), _mm256_castsi256_ps(sign));
    _mm256_storeu_ps(out + i, value);
  }
  return i;
}

std::int64_t decode_groups(Element element, const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count,
                           float* out) {
  switch (element) {
    case Element::f32: return decode_wide<Element::f32>(row, first, count, out);
    case Element::f16: return decode_wide<Element::f16>(row, first, count, out);
    case Element::bf16: return decode_wide<Element::bf16>(row, first, count, out);
    case Element::e4m3: return decode_wide<Element::e4m3>(row, first, count, out);
    case Element::e5m2: return decode_wide<Element::e5m2>(row, first, count, out);
    case Element::e8m0: return decode_wide<Element::e8m0>(row, first, count, out);
    case Element::e2m1: return first % 2 == 0 ? decode_nibbles(row, first, high_nibble_first, count, out) : 0;
    case Element::none: break;
  }
  return 0;
}

// In each 128-bit half a 4 x 4 block: row r, column c goes to row c, column r.
[[gnu::always_inline]] inline void transpose4(__m256& r0, __m256& r1, __m256& r2, __m256& r3) {
  const __m256 a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
  const __m256 c = _mm256_unpacklo_ps(r2, r3), d = _mm256_unpackhi_ps(r2, r3);
  r0 = _mm256_shuffle_ps(a, c, 0x44);
  r1 = _mm256_shuffle_ps(a, c, 0xEE);
  r2 = _mm256_shuffle_ps(b, d, 0x44);
  r3 = _mm256_shuffle_ps(b, d, 0xEE);
}

// Columns k .. k + 3 of rows row .. row + 7: a 256-bit register holds four columns of a row and of the row four below it.
[[gnu::always_inline]] inline void transpose_8x4(const float* in, std::int64_t stride, float* out) {
  __m256 r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in + i * stride)), _mm_loadu_ps(in + (i + 4) * stride), 1);
  }
  transpose4(r[0], r[1], r[2], r[3]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(out + i * kPanelRows, r[i]);
}

}  // namespace

void decode_run(Element element, const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count, float* out) {
  const std::int64_t done = decode_groups(element, row, first, high_nibble_first, count, out);
  if (done < count) portable::kLeaves.decode_run(element, row, first + done, high_nibble_first, count - done, out + done);
}

void transpose(const float* in, std::int64_t stride, std::int64_t count, float* out) {
  std::int64_t k = 0;
  for (; k + 4 <= count; k += 4) {
    transpose_8x4(in + k, stride, out + k * kPanelRows);
    transpose_8x4(in + 8 * stride + k, stride, out + k * kPanelRows + 8);
  }
  if (k < count) portable::kLeaves.transpose(in + k, stride, count - k, out + k * kPanelRows);
}

}  // namespace finescale::cpu::avx2
