// The product of one row of A with one prepared panel of nvfp4 B, for AVX2, FMA and F16C: gemv_avx2.cc's way, with fewer
// operations where x is `narrow`. Vector slots bound it, and a load into a register takes one (docs/kernels/cpu_gemm.md). So
//
//   - the two halves of a panel share every broadcast of x, and
//   - a block scale that is zero or a positive normal E4M3 becomes FP32 by a byte shuffle and a shift: code << 20 is its value
//     times 2^-120.
//
// The element table makes up for 2^80 of it, the sums for the rest. `narrow` keeps them normal:
//
//   a product    |x| 2^80 |element|   in [2^-50 2^80 2^-1, 2^36 2^80 6],  a block's sum below 2^123
//   and scaled                        at least 2^29 2^-126
//
// so every step is exact or rounds once, as without the powers of two. A unit with any other scale takes more operations.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kUnitCols = 64, kBlockCols = 16, kScaleBytes = 64, kUnitBytes = 576;  // panel16 of nvfp4
constexpr std::int64_t kAhead = 2 * kUnitBytes;                                              // bytes of the panel fetched ahead
constexpr int kElementExponent = 80;
constexpr float kSumFactor = 0x1p-112f;  // and e4m3_scales' 2^-8: together 2^-120
constexpr float kFinalFactor = 0x1p40f;  // 2^(120 - 80)

// Of rows 0 1 4 5, 2 3 6 7, 8 9 12 13 and 10 11 14 15, two lanes a row: the order that unpacking leaves them in.
struct PanelLanes {
  __m256 of[4];

  [[gnu::always_inline]] void clear() { of[0] = of[1] = of[2] = of[3] = _mm256_setzero_ps(); }
};

[[gnu::always_inline]] inline __m256i load(const unsigned char* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

// Whether each of a unit's 64 scale codes is 0 or of 0x08 .. 0x7E: neither negative, nor subnormal, nor NaN.
[[gnu::always_inline]] inline bool are_plain(const unsigned char* scales) {
  const __m256i a = load(scales), b = load(scales + 32), one = _mm256_set1_epi8(1);
  const __m256i least = _mm256_min_epu8(_mm256_sub_epi8(a, one), _mm256_sub_epi8(b, one));  // of code - 1, where 0 becomes 255
  const __m256i below = _mm256_subs_epu8(_mm256_set1_epi8(7), least);
  const __m256i above = _mm256_subs_epu8(_mm256_max_epu8(a, b), _mm256_set1_epi8(0x7E));
  const __m256i other = _mm256_or_si256(below, above);
  return _mm256_testz_si256(other, other) != 0;
}

// total += sums * 2^-120 * the block's scales.
template <bool kPlain>
[[gnu::always_inline]] inline void add_scaled(const PanelLanes& sums, const unsigned char* scales, PanelLanes& total) {
  if constexpr (kPlain) {
    const __m256i codes = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
    const __m256i first = _mm256_setr_epi32(0x00808080, 0x00808080, 0x01808080, 0x01808080, 0x04808080, 0x04808080, 0x05808080, 0x05808080);
    constexpr int kFirstRow[4] = {0, 2, 8, 10};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i top = _mm256_shuffle_epi8(codes, _mm256_add_epi32(first, _mm256_set1_epi32(kFirstRow[i] << 24)));  // code << 24
      total.of[i] = _mm256_fmadd_ps(sums.of[i], _mm256_castsi256_ps(_mm256_srli_epi32(top, 4)), total.of[i]);
    }
  } else {
    const RowScales rows = e4m3_scales(scales);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256 half = rows.half[i / 2], twice = i % 2 == 0 ? _mm256_unpacklo_ps(half, half) : _mm256_unpackhi_ps(half, half);
      total.of[i] = _mm256_fmadd_ps(_mm256_mul_ps(sums.of[i], _mm256_set1_ps(kSumFactor)), twice, total.of[i]);
    }
  }
}

// 4 columns of 8 rows, a code in each byte; x in the order 0 2 1 3.
[[gnu::always_inline]] inline void add_codes(__m256i codes, const ElementBytes& bytes, __m256 x02, __m256 x13, __m256& low, __m256& high) {
  const __m256i low_bytes = _mm256_shuffle_epi8(bytes.low, codes), high_bytes = _mm256_shuffle_epi8(bytes.high, codes);
  const __m256i a = _mm256_unpacklo_epi8(low_bytes, high_bytes), b = _mm256_unpackhi_epi8(low_bytes, high_bytes);
  const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
  low = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), x02, low);
  high = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(b, 16)), x02, high);
  low = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(a, odd)), x13, low);
  high = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(b, odd)), x13, high);
}

template <bool kPlain>
[[gnu::always_inline]] inline void add_block(const unsigned char* codes, const unsigned char* scales, const ElementBytes& bytes,
                                             const float* x, PanelLanes& total) {
  const __m256i nibble = _mm256_set1_epi8(0xF);
  PanelLanes sums;
  sums.clear();
#pragma GCC unroll 2
  for (std::int64_t col = 0; col < kBlockCols; col += 8, codes += 64, x += 8) {
    const __m256i upper = load(codes), lower = load(codes + 32);  // rows 0..7 and 8..15
    __m256 x02 = pair(x), x13 = pair(x + 2);
    add_codes(_mm256_and_si256(upper, nibble), bytes, x02, x13, sums.of[0], sums.of[1]);
    add_codes(_mm256_and_si256(lower, nibble), bytes, x02, x13, sums.of[2], sums.of[3]);
    x02 = pair(x + 4), x13 = pair(x + 6);
    add_codes(_mm256_and_si256(_mm256_srli_epi32(upper, 4), nibble), bytes, x02, x13, sums.of[0], sums.of[1]);
    add_codes(_mm256_and_si256(_mm256_srli_epi32(lower, 4), nibble), bytes, x02, x13, sums.of[2], sums.of[3]);
  }
  add_scaled<kPlain>(sums, scales, total);
}

template <bool kPlain>
[[gnu::always_inline]] inline void add_unit(const unsigned char* unit, std::int64_t cols, const ElementBytes& bytes, const float* x,
                                            PanelLanes& total) {
  const unsigned char* codes = unit + kScaleBytes;
  for (std::int64_t col = 0; col < cols; col += kBlockCols) {
    add_block<kPlain>(codes + col * (kPanelRows / 2), unit + col * (kPanelRows / kBlockCols), bytes, x + col, total);
  }
}

}  // namespace

void gemv_nvfp4(const PanelCodes& panel, std::int64_t cols, const float* x, float* out) {
  const ElementBytes bytes = element_bytes<kElementExponent>();
  PanelLanes total;
  total.clear();
  const unsigned char* unit = panel.units;
  for (std::int64_t k = 0; k < cols; k += kUnitCols, unit += kUnitBytes) {
    const std::int64_t unit_cols = cols - k < kUnitCols ? cols - k : kUnitCols;
#pragma GCC unroll 9
    for (std::int64_t line = 0; line < kUnitBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(unit + kAhead + line), _MM_HINT_T0);
    }
    if (are_plain(unit)) [[likely]] {
      add_unit<true>(unit, unit_cols, bytes, x + k, total);
    } else {
      add_unit<false>(unit, unit_cols, bytes, x + k, total);
    }
  }
  for (int half = 0; half < 2; ++half) {
    const __m256 joined = _mm256_hadd_ps(total.of[2 * half], total.of[2 * half + 1]);
    _mm256_storeu_ps(out + half * 8, _mm256_mul_ps(joined, _mm256_set1_ps(kFinalFactor)));
  }
}

}  // namespace finescale::cpu::avx2
