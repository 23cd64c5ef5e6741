// The product of 1..4 rows of A with one prepared panel of 8-bit B, for AVX2 and FMA. Lane = row throughout: a shift brings a
// column of 8 rows to the bottom of the lanes; a weight is multiplied by its block scale, then meets a broadcast x.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

constexpr std::int64_t kAhead = 2176;    // bytes of the panel fetched ahead
constexpr int kPlace[4] = {0, 2, 1, 3};  // where column j of four lies in x

// 4 columns of half a panel.
template <Element kElement, int kRows>
[[gnu::always_inline]] inline void add_columns(__m256i codes, __m256 scale, const float* x, std::int64_t x_stride, __m256 (&sums)[kRows]) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m256i code = _mm256_and_si256(_mm256_srli_epi32(codes, 8 * j), _mm256_set1_epi32(0xFF));
    const __m256 weight = _mm256_mul_ps(decode8(kElement, code), scale);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = _mm256_fmadd_ps(weight, _mm256_broadcast_ss(x + r * x_stride + kPlace[j]), sums[r]);
  }
}

template <Element kElement, int kRows>
void gemv_rows(const PanelCodes& panel, std::int64_t cols, const float* x, std::int64_t x_stride, float* out) {
  const std::int64_t scale_width = panel.scale == Element::f32 ? 4 : panel.scale == Element::none ? 0 : 1;
  __m256 sums[2][kRows];
  for (auto& half : sums) {
    for (__m256& sum : half) sum = _mm256_setzero_ps();
  }
  for (std::int64_t k = 0; k < cols; k += panel.block_cols) {
    const unsigned char* unit = panel.units + k / panel.unit_cols * panel.unit_bytes;
    const std::int64_t in_unit = k % panel.unit_cols, block_end = k + panel.block_cols < cols ? k + panel.block_cols : cols;
    const unsigned char* scales = unit + in_unit / panel.block_cols * kPanelRows * scale_width;
    const unsigned char* codes = unit + panel.scale_bytes + in_unit * kPanelRows;
    const __m256 scale[2] = {load_scales(panel.scale, scales), load_scales(panel.scale, scales + 8 * scale_width)};
    for (std::int64_t col = k; col < block_end; col += 4, codes += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(codes + kAhead), _MM_HINT_T0);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i eight_rows = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * half));
        add_columns<kElement, kRows>(eight_rows, scale[half], x + col, x_stride, sums[half]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(out + r * kPanelRows, sums[0][r]);
    _mm256_storeu_ps(out + r * kPanelRows + 8, sums[1][r]);
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
