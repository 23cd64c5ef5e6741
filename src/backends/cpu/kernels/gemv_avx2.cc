// The product of 1..4 rows of A with one prepared panel of 4-bit B, for AVX2, FMA and F16C. The weights are decoded in registers,
// once for all rows of A; the vector units bound it, so operations are counted here (docs/kernels/cpu_gemm.md).
//
// A byte shuffle gives the high and one the low byte of bf16(element) for 32 codes; unpacked, a 32-bit lane holds two columns of
// one row, which a shift and a mask turn into FP32. So lanes run (row, columns 0 1), (row, columns 2 3): x comes in pairs of
// columns (0, 2) and (1, 3), and a horizontal addition at the very end joins the two lanes of a row.
//
// A block scale multiplies either the block's sum (a product a block) or, before x meets them, the weights (a product a weight):
// the first where `narrow` promises that no sum of x times an element leaves the normal range.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kAhead = 1152;  // bytes of the panel fetched ahead: two units of nvfp4

// E4M3 scales come out of F16C times 2^-8; their element tables make up for it. Both are exact.
constexpr int table_exponent(Element scale) { return scale == Element::e4m3 ? 8 : 0; }

// Of rows 0 1 4 5 (low) and rows 2 3 6 7 (high) of a half panel, two lanes a row: the order that unpacking leaves them in.
struct Lanes {
  __m256 low, high;
};

template <Element kScale>
[[gnu::always_inline]] inline RowScales row_scales(const unsigned char* codes) {
  if constexpr (kScale == Element::e4m3) return e4m3_scales(codes);
  return {{load_scales(kScale, codes), load_scales(kScale, codes + (kScale == Element::f32 ? 32 : 8))}};
}

// Blocks of a unit at most: units are at most kDepth columns, blocks at least 8.
constexpr int kMostBlocks = kDepth / 8;

// The block scales of a unit, decoded once for both halves, each row's twice as the sums have it.
struct UnitScales {
  Lanes of[2][kMostBlocks];
};

template <Element kScale>
[[gnu::always_inline]] inline void decode_scales(const unsigned char* codes, std::int64_t blocks, UnitScales& out) {
  constexpr std::int64_t kBytes = kScale == Element::f32 ? 64 : kScale == Element::none ? 0 : 16;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const RowScales scales = row_scales<kScale>(codes + block * kBytes);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      out.of[h][block] = {_mm256_unpacklo_ps(scales.half[h], scales.half[h]), _mm256_unpackhi_ps(scales.half[h], scales.half[h])};
    }
  }
}

template <int kRows>
struct Sums {
  __m256 low[kRows], high[kRows];

  [[gnu::always_inline]] void clear() {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) low[r] = high[r] = _mm256_setzero_ps();
  }
};

// Adds 4 columns of 4 rows: `packed` holds bf16 pairs, x the four columns in the order 0 2 1 3.
template <bool kScaleFirst, int kRows>
[[gnu::always_inline]] inline void add_pairs(__m256i packed, __m256 scale, const float* x, std::int64_t x_stride, __m256 (&sums)[kRows]) {
  __m256 even = _mm256_castsi256_ps(_mm256_slli_epi32(packed, 16));
  __m256 odd = _mm256_castsi256_ps(_mm256_and_si256(packed, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
  if constexpr (kScaleFirst) {
    even = _mm256_mul_ps(even, scale);
    odd = _mm256_mul_ps(odd, scale);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sums[r] = _mm256_fmadd_ps(even, pair(x + r * x_stride), sums[r]);
    sums[r] = _mm256_fmadd_ps(odd, pair(x + r * x_stride + 2), sums[r]);
  }
}

// 8 columns of a half panel.
template <bool kScaleFirst, int kRows>
[[gnu::always_inline]] inline void add_codes(__m256i codes, const ElementBytes& bytes, const Lanes& scale, const float* x,
                                             std::int64_t x_stride, Sums<kRows>& sums) {
#pragma GCC unroll 2
  for (int nibble = 0; nibble < 2; ++nibble) {
    const __m256i code = _mm256_and_si256(nibble == 0 ? codes : _mm256_srli_epi32(codes, 4), _mm256_set1_epi8(0xF));
    const __m256i low = _mm256_shuffle_epi8(bytes.low, code), high = _mm256_shuffle_epi8(bytes.high, code);
    add_pairs<kScaleFirst>(_mm256_unpacklo_epi8(low, high), scale.low, x + 4 * nibble, x_stride, sums.low);
    add_pairs<kScaleFirst>(_mm256_unpackhi_epi8(low, high), scale.high, x + 4 * nibble, x_stride, sums.high);
  }
}

// Half a panel, one unit: total += x * weights.
template <int kBlockCols, bool kScaleFirst, int kRows>
[[gnu::always_inline]] inline void add_unit(const unsigned char* codes, std::int64_t block_cols, std::int64_t blocks, const Lanes* scales,
                                            const ElementBytes& bytes, const float* x, std::int64_t x_stride, Sums<kRows>& total) {
  if constexpr (kBlockCols != 0) block_cols = kBlockCols;
  for (std::int64_t block = 0; block < blocks; ++block, x += block_cols) {
    const Lanes scale = scales[block];
    Sums<kRows> sums = total;
    if constexpr (!kScaleFirst) sums.clear();
#pragma GCC unroll 2
    for (std::int64_t col = 0; col < block_cols; col += 8, codes += 64) {
      add_codes<kScaleFirst>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)), bytes, scale, x + col, x_stride, sums);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      total.low[r] = kScaleFirst ? sums.low[r] : _mm256_fmadd_ps(sums.low[r], scale.low, total.low[r]);
      total.high[r] = kScaleFirst ? sums.high[r] : _mm256_fmadd_ps(sums.high[r], scale.high, total.high[r]);
    }
  }
}

// The two halves of a panel take turns unit by unit: memory is read in one stream, and one half's sums fit the registers.
// kBlockCols 0: block_cols, known at run time only.
template <Element kScale, int kBlockCols, bool kScaleFirst, int kRows>
void gemv_e2m1(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, float* out) {
  const ElementBytes bytes = element_bytes<table_exponent(kScale)>();
  const std::int64_t block_cols = kBlockCols != 0 ? kBlockCols : panel.block_cols;
  Sums<kRows> total[2];
  total[0].clear();
  total[1].clear();
  UnitScales scales;
  const unsigned char* unit = panel.units;
  for (std::int64_t k = 0; k < cols; k += panel.unit_cols, unit += panel.unit_bytes) {
    const std::int64_t unit_cols = cols - k < panel.unit_cols ? cols - k : panel.unit_cols;
    const std::int64_t blocks = (unit_cols + block_cols - 1) / block_cols;
    for (std::int64_t line = 0; line < panel.unit_bytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(unit + kAhead + line), _MM_HINT_T0);
    decode_scales<kScale>(unit, blocks, scales);
    for (int half = 0; half < 2; ++half) {
      add_unit<kBlockCols, kScaleFirst>(unit + panel.scale_bytes + half * 32, block_cols, blocks, scales.of[half], bytes, x + k, x_stride,
                                        total[half]);
    }
  }
  for (int half = 0; half < 2; ++half) {
    for (int r = 0; r < kRows; ++r) {
      _mm256_storeu_ps(out + r * kPanelRows + half * 8, _mm256_hadd_ps(total[half].low[r], total[half].high[r]));
    }
  }
}

// Three and four rows scale the weights first: their sums fill the registers, and the products are shared by the rows.
template <Element kScale, int kBlockCols>
void gemv_rows(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, bool narrow,
               float* out) {
  switch (rows) {
    case 1:
      return narrow ? gemv_e2m1<kScale, kBlockCols, false, 1>(panel, cols, x, x_stride, out)
                    : gemv_e2m1<kScale, kBlockCols, true, 1>(panel, cols, x, x_stride, out);
    case 2:
      return narrow ? gemv_e2m1<kScale, kBlockCols, false, 2>(panel, cols, x, x_stride, out)
                    : gemv_e2m1<kScale, kBlockCols, true, 2>(panel, cols, x, x_stride, out);
    case 3: return gemv_e2m1<kScale, kBlockCols, true, 3>(panel, cols, x, x_stride, out);
    default: return gemv_e2m1<kScale, kBlockCols, true, 4>(panel, cols, x, x_stride, out);
  }
}

}  // namespace

void gemv_panel(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, bool narrow,
                float* out) {
  if (panel.element != Element::e2m1) return gemv_bytes(panel, cols, rows, x, x_stride, out);
  if (rows == 1 && narrow && panel.scale == Element::e4m3 && panel.block_cols == 16) return gemv_nvfp4(panel, cols, x, out);
  switch (panel.scale) {
    case Element::e4m3:
      return panel.block_cols == 16 ? gemv_rows<Element::e4m3, 16>(panel, cols, rows, x, x_stride, narrow, out)
                                    : gemv_rows<Element::e4m3, 0>(panel, cols, rows, x, x_stride, narrow, out);
    case Element::e8m0: return gemv_rows<Element::e8m0, 0>(panel, cols, rows, x, x_stride, narrow, out);
    case Element::f32: return gemv_rows<Element::f32, 0>(panel, cols, rows, x, x_stride, narrow, out);
    default: return gemv_rows<Element::none, 0>(panel, cols, rows, x, x_stride, narrow, out);
  }
}

}  // namespace finescale::cpu::avx2
