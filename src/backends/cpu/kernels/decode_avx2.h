// Codes to FP32 in AVX2 registers, shared by the files of this instruction set. Everything here is in an unnamed namespace and
// always inlined: no function of an ISA file may be picked up by another file.
#pragma once

#include "backends/cpu/kernels/leaves.h"

#include <immintrin.h>

#include <cstdint>

namespace finescale::cpu::avx2 {

// Strong entry points that kLeaves (gemm_avx2.cc) and gemv_panel call.
void gemv_panel(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, bool narrow,
                float* out);
void gemv_nvfp4(const PanelCodes& panel, std::int64_t cols, const float* x, float* out);
void gemv_bytes(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, float* out);
void decode_run(Element element, const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count, float* out);
void transpose(const float* in, std::int64_t stride, std::int64_t count, float* out);
void quantize_nvfp4(const float* x, std::int64_t blocks, float g, std::uint8_t* scales, std::uint8_t* codes);

namespace {

// Eight codes 0..255, one a lane, to their values. Exact: a normal code's exponent is rebiased by an integer addition; a
// subnormal one, which that would make an FP32 subnormal (slow on some processors), is an integer times its unit; NaN is set.
[[gnu::always_inline]] inline __m256 decode_e4m3(__m256i code) {
  const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
  const __m256i sign = _mm256_slli_epi32(_mm256_andnot_si256(_mm256_set1_epi32(0x7F), code), 24);
  const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 20), _mm256_set1_epi32(120 << 23));
  const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-9f));
  const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), magnitude);
  const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7F)), _mm256_set1_epi32(0x7FC00000));
  const __m256i value = _mm256_blendv_epi8(normal, _mm256_castps_si256(subnormal), is_subnormal);
  return _mm256_castsi256_ps(_mm256_or_si256(_mm256_or_si256(value, nan), sign));
}

[[gnu::always_inline]] inline __m256 decode_e5m2(__m256i code) {
  const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
  const __m256i sign = _mm256_slli_epi32(_mm256_andnot_si256(_mm256_set1_epi32(0x7F), code), 24);
  const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 21), _mm256_set1_epi32(112 << 23));
  const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-16f));
  const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(4), magnitude);
  const __m256i infinite = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7B)), _mm256_set1_epi32(0x7F800000));
  const __m256i nan = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7C)), _mm256_set1_epi32(0x7FC00000));
  const __m256i value = _mm256_blendv_epi8(normal, _mm256_castps_si256(subnormal), is_subnormal);
  // From 0x7C on the exponent field is set to all ones; the mantissa of Inf (0x7C) is zero.
  return _mm256_castsi256_ps(_mm256_or_si256(_mm256_or_si256(value, infinite), _mm256_or_si256(nan, sign)));
}

[[gnu::always_inline]] inline __m256 decode8(Element element, __m256i code) {
  return element == Element::e4m3 ? decode_e4m3(code) : decode_e5m2(code);
}

// 2^(code - 127): code 0 is the FP32 subnormal 2^-127, code 255 is NaN.
[[gnu::always_inline]] inline __m256 decode_e8m0(__m256i code) {
  const __m256i power = _mm256_slli_epi32(code, 23);
  const __m256i lowest = _mm256_and_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), _mm256_set1_epi32(0x00400000));
  const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi32(code, _mm256_set1_epi32(255)), _mm256_set1_epi32(0x7FC00000));
  return _mm256_castsi256_ps(_mm256_or_si256(power, _mm256_or_si256(lowest, nan)));
}

// The block scales of 8 rows.
[[gnu::always_inline]] inline __m256 load_scales(Element scale, const unsigned char* codes) {
  if (scale == Element::none) return _mm256_set1_ps(1.0f);
  if (scale == Element::f32) return _mm256_loadu_ps(reinterpret_cast<const float*>(codes));
  const __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
  return scale == Element::e4m3 ? decode_e4m3(code) : decode_e8m0(code);
}

// The block scales of 16 rows in two registers, those of E4M3 times 2^-8: an element table makes up for it.
struct RowScales {
  __m256 half[2];
};

// E4M3 as f16: the exponent field keeps its place but for the bias, 7 against 15, so the value is 2^-8 of the scale, subnormals
// included. A magnitude of 0x7F carries into bit 14, which makes the f16 exponent all ones: NaN.
[[gnu::always_inline]] inline RowScales e4m3_scales(const unsigned char* codes) {
  const __m256i high_bytes = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))), 8);
  const __m256i half = _mm256_and_si256(_mm256_srai_epi16(high_bytes, 1), _mm256_set1_epi16(static_cast<short>(0xBF80)));
  const __m256i nan = _mm256_and_si256(_mm256_add_epi16(half, _mm256_set1_epi16(0x0080)), _mm256_set1_epi16(0x4000));
  const __m256i bits = _mm256_or_si256(half, nan);
  return {{_mm256_cvtph_ps(_mm256_castsi256_si128(bits)), _mm256_cvtph_ps(_mm256_extracti128_si256(bits, 1))}};
}

// The two bytes of bf16(e2m1 * 2^exponent) for the 16 codes, in both 128-bit halves; only the high byte knows an even exponent.
struct ElementBytes {
  __m256i high, low;
};

template <int kExponent>
[[gnu::always_inline]] inline ElementBytes element_bytes() {
  constexpr int e = kExponent / 2;
  const auto b = [](int value) { return static_cast<char>(value + e); };
  const __m128i high = _mm_setr_epi8(0, b(0x3F), b(0x3F), b(0x3F), b(0x40), b(0x40), b(0x40), b(0x40), static_cast<char>(0x80), b(0xBF),
                                     b(0xBF), b(0xBF), b(0xC0), b(0xC0), b(0xC0), b(0xC0));
  const __m128i low = _mm_setr_epi8(0, 0, -128, -64, 0, 64, -128, -64, 0, 0, -128, -64, 0, 64, -128, -64);
  return {_mm256_broadcastsi128_si256(high), _mm256_broadcastsi128_si256(low)};
}

// A pair of columns of x in every two lanes.
[[gnu::always_inline]] inline __m256 pair(const float* x) {
  return _mm256_castpd_ps(_mm256_broadcast_sd(reinterpret_cast<const double*>(x)));
}

}  // namespace
}  // namespace finescale::cpu::avx2
