// The product of 1..4 rows of A with one prepared panel of 8-bit B, for AVX2, FMA and F16C.
//
// E4M3 and E5M2 keep sign and exponent where f16 has its own, so a byte moved into the high half of 16 bits, E4M3 with its
// exponent field one bit lower, is an f16 that F16C decodes, subnormals included: E5M2 as it is, E4M3 times 2^-8. Lanes run
// (row, columns 0 2) for the even and (row, columns 1 3) for the odd bytes of four columns: x comes in the same pairs, and a
// horizontal addition at the very end joins the two lanes of a row. A weight is multiplied by its block scale before x meets it.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kAhead = 2048;  // bytes of the panel fetched ahead

// Bytes in the high halves of 16-bit lanes, anything below them, to f16. E4M3: a magnitude of 0x7F carries into bit 14, which
// makes the exponent all ones: NaN.
template <Element kElement>
[[gnu::always_inline]] inline __m256i to_half(__m256i high_bytes) {
  if constexpr (kElement == Element::e5m2) return _mm256_and_si256(high_bytes, _mm256_set1_epi16(static_cast<short>(0xFF00)));
  const __m256i half = _mm256_and_si256(_mm256_srai_epi16(high_bytes, 1), _mm256_set1_epi16(static_cast<short>(0xBF80)));
  const __m256i nan = _mm256_and_si256(_mm256_add_epi16(half, _mm256_set1_epi16(0x0080)), _mm256_set1_epi16(0x4000));
  return _mm256_or_si256(half, nan);
}

template <Element kElement>
[[gnu::always_inline]] inline __m256 to_float(__m128i half) {
  const __m256 value = _mm256_cvtph_ps(half);
  return kElement == Element::e4m3 ? _mm256_mul_ps(value, _mm256_set1_ps(256.0f)) : value;
}

// Of rows 0..3 (low) and rows 4..7 (high) of a half panel, two lanes a row.
struct Lanes {
  __m256 low, high;
};

[[gnu::always_inline]] inline Lanes twice(__m256 scale) {
  return {_mm256_permutevar8x32_ps(scale, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
          _mm256_permutevar8x32_ps(scale, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}

// Two columns of a half panel; `x` is their pair.
template <Element kElement, int kRows>
[[gnu::always_inline]] inline void add_columns(__m256i halves, const Lanes& scale, const float* x, std::int64_t x_stride,
                                               Lanes (&sums)[kRows]) {
  const __m256 low = _mm256_mul_ps(to_float<kElement>(_mm256_castsi256_si128(halves)), scale.low);
  const __m256 high = _mm256_mul_ps(to_float<kElement>(_mm256_extracti128_si256(halves, 1)), scale.high);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m256 columns = pair(x + r * x_stride);
    sums[r].low = _mm256_fmadd_ps(low, columns, sums[r].low);
    sums[r].high = _mm256_fmadd_ps(high, columns, sums[r].high);
  }
}

// Half a panel, the columns of one unit from k on.
template <Element kElement, int kRows>
[[gnu::always_inline]] inline void add_unit(const PanelCodes& panel, const unsigned char* unit, int half, std::int64_t cols, const float* x,
                                            std::int64_t x_stride, Lanes (&total)[kRows]) {
  const std::int64_t scale_width = panel.scale == Element::f32 ? 4 : panel.scale == Element::none ? 0 : 1;
  const unsigned char* codes = unit + panel.scale_bytes + half * 32;
  Lanes sums[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = total[r];
  for (std::int64_t block = 0, scales = half * 8 * scale_width; block < cols;
       block += panel.block_cols, scales += kPanelRows * scale_width) {
    const Lanes scale = twice(load_scales(panel.scale, unit + scales));
    const std::int64_t end = block + panel.block_cols < cols ? block + panel.block_cols : cols;
    for (std::int64_t col = block; col < end; col += 4, codes += 64) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
      add_columns<kElement>(to_half<kElement>(_mm256_slli_epi16(bytes, 8)), scale, x + col, x_stride, sums);
      add_columns<kElement>(to_half<kElement>(bytes), scale, x + col + 2, x_stride, sums);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) total[r] = sums[r];
}

// The two halves of a panel take turns unit by unit, as in gemv_avx2.cc.
template <Element kElement, int kRows>
void gemv_rows(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, float* out) {
  Lanes total[2][kRows];
  for (auto& half : total) {
    for (Lanes& row : half) row = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  const unsigned char* unit = panel.units;
  for (std::int64_t k = 0; k < cols; k += panel.unit_cols, unit += panel.unit_bytes) {
    const std::int64_t unit_cols = cols - k < panel.unit_cols ? cols - k : panel.unit_cols;
    for (std::int64_t line = 0; line < panel.unit_bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(unit + kAhead + line), _MM_HINT_T0);
    }
    for (int half = 0; half < 2; ++half) add_unit<kElement>(panel, unit, half, unit_cols, x + k, x_stride, total[half]);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      // The addition leaves rows 0 1 4 5 | 2 3 6 7.
      const __m256d joined = _mm256_castps_pd(_mm256_hadd_ps(total[half][r].low, total[half][r].high));
      _mm256_storeu_ps(out + r * kPanelRows + half * 8, _mm256_castpd_ps(_mm256_permute4x64_pd(joined, 0xD8)));
    }
  }
}

template <Element kElement>
void gemv_element(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, float* out) {
  switch (rows) {
    case 1: return gemv_rows<kElement, 1>(panel, cols, x, x_stride, out);
    case 2: return gemv_rows<kElement, 2>(panel, cols, x, x_stride, out);
    case 3: return gemv_rows<kElement, 3>(panel, cols, x, x_stride, out);
    default: return gemv_rows<kElement, 4>(panel, cols, x, x_stride, out);
  }
}

}  // namespace

void gemv_bytes(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, float* out) {
  if (panel.element == Element::e4m3) return gemv_element<Element::e4m3>(panel, cols, rows, x, x_stride, out);
  return gemv_element<Element::e5m2>(panel, cols, rows, x, x_stride, out);
}

}  // namespace finescale::cpu::avx2
