// nvfp4 from FP32 values for AVX2, the bytes of block_quantizer.h: every product and quotient is one FP32 operation.
//
//   scale = e4m3(amax / (6 g))     code = e2m1(x / (scale g))     scale 0: codes 0;  NaN or Inf in a block: scale NaN, codes of NaN
//
// Two passes over up to 64 blocks in L1, first scales, then codes: in one loop each block would wait for its two divisions.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kMostBlocks = 64;

[[gnu::always_inline]] inline __m256i magnitude_bits(__m256 value) {
  return _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7FFFFFFF));
}

// Nearest even, saturating; value >= 0. A normal result is the value's bits rounded to 3 mantissa bits by an integer addition;
// a subnormal one is the nearest integer to value * 2^9.
[[gnu::always_inline]] inline __m256i encode_e4m3(__m256 value) {
  value = _mm256_min_ps(value, _mm256_set1_ps(448.0f));
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFFF)), odd), 20);
  const __m256i normal = _mm256_sub_epi32(rounded, _mm256_set1_epi32(120 << 3));
  const __m256i subnormal = _mm256_cvtps_epi32(_mm256_mul_ps(value, _mm256_set1_ps(512.0f)));
  const __m256 is_subnormal = _mm256_cmp_ps(value, _mm256_set1_ps(0x1p-6f), _CMP_LT_OQ);
  return _mm256_blendv_epi8(normal, subnormal, _mm256_castps_si256(is_subnormal));
}

// Magnitude codes by one addition: with the constant 2^22 * max(2^floor(log2 a), 1) the sum's last mantissa bit is one step of
// the grid at a, so the FPU rounds to nearest even; the constant carries 2 * floor(log2 a) in its low bits, the code's offset.
[[gnu::always_inline]] inline __m256i encode_e2m1(__m256 quotient) {
  const __m256 a = _mm256_min_ps(_mm256_castsi256_ps(magnitude_bits(quotient)), _mm256_set1_ps(6.0f));
  const __m256i exponent =
      _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7F800000)), _mm256_set1_epi32(0x3F800000));
  const __m256i constant =
      _mm256_add_epi32(_mm256_add_epi32(exponent, _mm256_srli_epi32(exponent, 22)), _mm256_set1_epi32((22 << 23) - 254));
  return _mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(a, _mm256_castsi256_ps(constant))), _mm256_set1_epi32(7));
}

// Largest magnitude, as bits, of each of 8 blocks of 16; lane = block.
[[gnu::always_inline]] inline __m256i block_amaxes(const float* x) {
  __m256i u[8], v[4], w[2];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j)
    u[j] = _mm256_max_epu32(magnitude_bits(_mm256_loadu_ps(x + j * 16)), magnitude_bits(_mm256_loadu_ps(x + j * 16 + 8)));
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j)
    v[j] = _mm256_max_epu32(_mm256_unpacklo_epi32(u[2 * j], u[2 * j + 1]), _mm256_unpackhi_epi32(u[2 * j], u[2 * j + 1]));
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j)
    w[j] = _mm256_max_epu32(_mm256_unpacklo_epi64(v[2 * j], v[2 * j + 1]), _mm256_unpackhi_epi64(v[2 * j], v[2 * j + 1]));
  return _mm256_max_epu32(_mm256_permute2x128_si256(w[0], w[1], 0x20), _mm256_permute2x128_si256(w[0], w[1], 0x31));
}

// Eight 32-bit lanes of small numbers as eight bytes.
[[gnu::always_inline]] inline void store_bytes(__m256i lanes, std::uint8_t* out) {
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
}

// Scale codes and divisors of 8 blocks; bits of `irregular`: blocks whose scale is 0 or NaN.
[[gnu::always_inline]] inline void encode_scales(__m256i amax, float g, std::uint8_t* scales, float* divisors, std::uint8_t* irregular) {
  const __m256i bad = _mm256_cmpgt_epi32(amax, _mm256_set1_epi32(0x7F7FFFFF));
  const __m256 quotient = _mm256_div_ps(_mm256_castsi256_ps(amax), _mm256_set1_ps(6.0f * g));
  const __m256i code = _mm256_blendv_epi8(encode_e4m3(quotient), _mm256_set1_epi32(0x7F), bad);
  _mm256_storeu_ps(divisors, _mm256_mul_ps(decode_e4m3(code), _mm256_set1_ps(g)));
  store_bytes(code, scales);
  const __m256i zero = _mm256_cmpeq_epi32(code, _mm256_setzero_si256());
  *irregular = static_cast<std::uint8_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(bad, zero))));
}

// 32 codes of two blocks.
[[gnu::always_inline]] inline void encode_codes(const float* x, const float* divisors, std::uint8_t* codes) {
  __m256 quotient[4];
  __m256i code[4];
#pragma GCC unroll 4
  for (int h = 0; h < 4; ++h) {
    quotient[h] = _mm256_div_ps(_mm256_loadu_ps(x + h * 8), _mm256_broadcast_ss(divisors + h / 2));
    code[h] = encode_e2m1(quotient[h]);
  }
  const __m256i magnitude = _mm256_packus_epi16(_mm256_packus_epi32(code[0], code[1]), _mm256_packus_epi32(code[2], code[3]));
  const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(_mm256_castps_si256(quotient[0]), _mm256_castps_si256(quotient[1])),
                                           _mm256_packs_epi32(_mm256_castps_si256(quotient[2]), _mm256_castps_si256(quotient[3])));
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(words, 4), _mm256_set1_epi8(8));  // saturation keeps the sign bit
  // A byte a code, quads of each half in turn: a pair becomes low + 16 * high, then the quads go into order.
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_or_si256(magnitude, sign), _mm256_set1_epi16(0x1001));
  const __m256i packed = _mm256_packus_epi16(pairs, pairs);
  const __m128i ordered = _mm_unpacklo_epi16(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), ordered);
}

}  // namespace

void quantize_nvfp4(const float* x, std::int64_t blocks, float g, std::uint8_t* scales, std::uint8_t* codes) {
  alignas(32) float divisors[kMostBlocks];
  std::uint8_t irregular[kMostBlocks / 8];
  std::uint8_t eight[8];
  std::int64_t block = 0;
  for (; block + 8 <= blocks; block += 8)
    encode_scales(block_amaxes(x + block * 16), g, scales + block, divisors + block, irregular + block / 8);
  if (block < blocks) {
    float padded[128];
    for (std::int64_t i = 0; i < 128; ++i) padded[i] = i < (blocks - block) * 16 ? x[block * 16 + i] : 0.0f;
    encode_scales(block_amaxes(padded), g, eight, divisors + block, irregular + block / 8);
    for (std::int64_t i = block; i < blocks; ++i) scales[i] = eight[i - block];
  }
  std::int64_t at = 0;
  for (; at + 2 <= blocks; at += 2) encode_codes(x + at * 16, divisors + at, codes + at * 8);
  if (at < blocks) {
    float padded[32] = {};
    std::uint8_t two[16];
    for (std::int64_t i = 0; i < 16; ++i) padded[i] = x[at * 16 + i];
    const float divisor[2] = {divisors[at], 1.0f};
    encode_codes(padded, divisor, two);
    for (std::int64_t i = 0; i < 8; ++i) codes[at * 8 + i] = two[i];
  }
  for (std::int64_t i = 0; i < blocks; ++i) {
    if ((irregular[i / 8] >> i % 8 & 1) == 0) continue;
    for (std::int64_t byte = 0; byte < 8; ++byte) codes[i * 8 + byte] = scales[i] == 0 ? 0x00 : 0x77;  // E2M1 has no NaN: 7 stands for it
  }
}

}  // namespace finescale::cpu::avx2
