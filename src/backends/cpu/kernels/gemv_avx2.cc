// The product of 1..4 rows of A with one prepared panel of B, for AVX2 and FMA: bound by reading B, so the weights are decoded
// in registers, once for all rows of A.
//
//   4-bit   A byte shuffle gives the high and one the low byte of bf16(element) for 32 codes; unpacked, a 32-bit lane holds two
//           columns of one row, which a shift and a mask turn into FP32. So lanes run (row, columns 0 1), (row, columns 2 3):
//           x comes in pairs of columns (0, 2) and (1, 3), and a horizontal addition at the end joins the two lanes of a row.
//   8-bit   Lane = row throughout; a shift brings a column to the bottom of the lanes.
//
// A weight is multiplied by its block scale before x meets it: no sum can overflow or lose bits that its terms do not.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kAhead = 1152;  // bytes of the panel fetched ahead: two units of nvfp4

// The two bytes of bf16(e2m1) for the 16 codes, in both 128-bit halves.
struct ElementBytes {
  __m256i high, low;
};

[[gnu::always_inline]] inline ElementBytes element_bytes() {
  const auto b = [](int value) { return static_cast<char>(value); };
  const __m128i high =
      _mm_setr_epi8(0, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40, b(0x80), b(0xBF), b(0xBF), b(0xBF), b(0xC0), b(0xC0), b(0xC0), b(0xC0));
  const __m128i low = _mm_setr_epi8(0, 0, b(0x80), b(0xC0), 0, 0x40, b(0x80), b(0xC0), 0, 0, b(0x80), b(0xC0), 0, 0x40, b(0x80), b(0xC0));
  return {_mm256_broadcastsi128_si256(high), _mm256_broadcastsi128_si256(low)};
}

[[gnu::always_inline]] inline __m256 pair(const float* x) {
  return _mm256_castpd_ps(_mm256_broadcast_sd(reinterpret_cast<const double*>(x)));
}

// Adds 4 columns of 4 rows: `packed` holds bf16 pairs, x the four columns in the order 0 2 1 3.
template <int kRows>
[[gnu::always_inline]] inline void add_pairs(__m256i packed, __m256 scale, const float* x, std::int64_t x_stride, __m256 (&acc)[kRows]) {
  const __m256 even = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(packed, 16)), scale);
  const __m256 odd = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_and_si256(packed, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u)))), scale);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    acc[r] = _mm256_fmadd_ps(even, pair(x + r * x_stride), acc[r]);
    acc[r] = _mm256_fmadd_ps(odd, pair(x + r * x_stride + 2), acc[r]);
  }
}

template <int kRows>
struct HalfSums {
  __m256 low[kRows], high[kRows];  // of rows 0 1 4 5 and of rows 2 3 6 7 of a half panel, two lanes a row
};

// 8 columns of a half panel (8 rows). low and high are the block scales in the lanes of the unpacked pairs.
template <int kRows>
[[gnu::always_inline]] inline void add_codes(__m256i codes, const ElementBytes& bytes, __m256 scale_low, __m256 scale_high, const float* x,
                                             std::int64_t x_stride, HalfSums<kRows>& sums) {
#pragma GCC unroll 2
  for (int nibble = 0; nibble < 2; ++nibble) {
    const __m256i code = _mm256_and_si256(nibble == 0 ? codes : _mm256_srli_epi32(codes, 4), _mm256_set1_epi8(0xF));
    const __m256i low = _mm256_shuffle_epi8(bytes.low, code), high = _mm256_shuffle_epi8(bytes.high, code);
    add_pairs<kRows>(_mm256_unpacklo_epi8(low, high), scale_low, x + 4 * nibble, x_stride, sums.low);
    add_pairs<kRows>(_mm256_unpackhi_epi8(low, high), scale_high, x + 4 * nibble, x_stride, sums.high);
  }
}

// kHalves halves of a panel from `first_half` on, over all of K.
template <int kRows, int kHalves>
void gemv_e2m1(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, int first_half, float* out) {
  const ElementBytes bytes = element_bytes();
  const std::int64_t scale_width = panel.scale == Element::f32 ? 4 : 1;
  HalfSums<kRows> sums[kHalves];
  for (auto& half : sums) {
    for (int r = 0; r < kRows; ++r) half.low[r] = half.high[r] = _mm256_setzero_ps();
  }
  const unsigned char* unit = panel.units;
  for (std::int64_t k0 = 0; k0 < cols; k0 += panel.unit_cols, unit += panel.unit_bytes) {
    const unsigned char* lanes = unit + panel.scale_bytes;
    const std::int64_t unit_end = k0 + panel.unit_cols < cols ? k0 + panel.unit_cols : cols;
    for (std::int64_t k = k0, block = 0; k < unit_end; k += panel.block_cols, ++block) {
      __m256 scale_low[kHalves], scale_high[kHalves];
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        const __m256 scale = load_scales(panel.scale, unit + (block * kPanelRows + (first_half + h) * 8) * scale_width);
        scale_low[h] = _mm256_unpacklo_ps(scale, scale);
        scale_high[h] = _mm256_unpackhi_ps(scale, scale);
      }
      for (std::int64_t in_block = 0; in_block < panel.block_cols; in_block += 8, lanes += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(lanes + kAhead), _MM_HINT_T0);
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + (first_half + h) * 32));
          add_codes<kRows>(codes, bytes, scale_low[h], scale_high[h], x + k + in_block, x_stride, sums[h]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int h = 0; h < kHalves; ++h) {
      _mm256_storeu_ps(out + r * kPanelRows + (first_half + h) * 8, _mm256_hadd_ps(sums[h].low[r], sums[h].high[r]));
    }
  }
}

template <int kRows>
void gemv_bytes(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, float* out) {
  constexpr int kOrder[4] = {0, 2, 1, 3};  // where column j of four lies in x
  const std::int64_t scale_width = panel.scale == Element::f32 ? 4 : 1;
  __m256 acc[kRows][2];
  for (auto& row : acc) row[0] = row[1] = _mm256_setzero_ps();
  for (std::int64_t k = 0; k < cols; k += panel.block_cols) {
    const unsigned char* unit = panel.units + k / panel.unit_cols * panel.unit_bytes;
    const std::int64_t in_unit = k % panel.unit_cols, block_end = k + panel.block_cols < cols ? k + panel.block_cols : cols;
    const unsigned char* scales = unit + in_unit / panel.block_cols * kPanelRows * scale_width;
    const unsigned char* lanes = unit + panel.scale_bytes + in_unit * kPanelRows;
    const __m256 scale[2] = {load_scales(panel.scale, scales), load_scales(panel.scale, scales + 8 * scale_width)};
    for (std::int64_t column = k; column < block_end; column += 4, lanes += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(lanes + kAhead), _MM_HINT_T0);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 32 * h));
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          const __m256i code = _mm256_and_si256(_mm256_srli_epi32(codes, 8 * j), _mm256_set1_epi32(0xFF));
          const __m256 weight = _mm256_mul_ps(decode8(panel.element, code), scale[h]);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            acc[r][h] = _mm256_fmadd_ps(weight, _mm256_broadcast_ss(x + r * x_stride + column + kOrder[j]), acc[r][h]);
          }
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(out + r * kPanelRows, acc[r][0]);
    _mm256_storeu_ps(out + r * kPanelRows + 8, acc[r][1]);
  }
}

// Up to two rows keep the sums of a whole panel in registers; more take one half of it after the other.
template <int kRows>
void gemv_rows(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, float* out) {
  if (panel.element != Element::e2m1) return gemv_bytes<kRows>(panel, cols, x, x_stride, out);
  if constexpr (kRows <= 2) {
    gemv_e2m1<kRows, 2>(panel, cols, x, x_stride, 0, out);
  } else {
    gemv_e2m1<kRows, 1>(panel, cols, x, x_stride, 0, out);
    gemv_e2m1<kRows, 1>(panel, cols, x, x_stride, 1, out);
  }
}

}  // namespace

void gemv_panel(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, float* sums) {
  switch (rows) {
    case 1: return gemv_rows<1>(panel, cols, x, x_stride, sums);
    case 2: return gemv_rows<2>(panel, cols, x, x_stride, sums);
    case 3: return gemv_rows<3>(panel, cols, x, x_stride, sums);
    default: return gemv_rows<4>(panel, cols, x, x_stride, sums);
  }
}

}  // namespace finescale::cpu::avx2
