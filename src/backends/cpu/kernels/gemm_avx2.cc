// The leaves of the product for AVX2, FMA and F16C.
//
//   multiply   6 x 16 outputs in 12 registers; a step of k is two loads of the panel, six broadcasts of A and twelve FMAs, so
//              the FMA units bound it. Sums run over k ascending, one FMA a term, whatever the number of rows.
//   decode     panel16 keeps one row in a 32-bit lane: a shift brings column n of 8 rows to the bottom of the lanes, vpermps
//              looks eight magnitudes up, and the sign bit is moved onto the block scale, so a weight costs one product.
#include "backends/cpu/kernels/decode_avx2.h"
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {
namespace {

// 8 columns of 8 rows in one register of 4-bit codes: lane = row, byte j holds columns j (low) and j + 4 (high).
[[gnu::always_inline]] inline void decode_e2m1(__m256i codes, __m256 scale, float* out) {
  const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  const __m256i sign_bit = _mm256_set1_epi32(static_cast<int>(0x80000000u));
#pragma GCC unroll 8
  for (int nibble = 0; nibble < 8; ++nibble) {
    const int column = nibble / 2 + nibble % 2 * 4;
    const __m256 magnitude = _mm256_permutevar8x32_ps(magnitudes, _mm256_srli_epi32(codes, 4 * nibble));
    const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(codes, 28 - 4 * nibble), sign_bit);
    const __m256 value = _mm256_mul_ps(magnitude, _mm256_xor_ps(scale, _mm256_castsi256_ps(sign)));
    _mm256_store_ps(out + column * kPanelRows, value);
  }
}

// 4 columns of 8 rows in one register of 8-bit codes.
[[gnu::always_inline]] inline void decode_bytes(Element element, __m256i codes, __m256 scale, float* out) {
#pragma GCC unroll 4
  for (int column = 0; column < 4; ++column) {
    const __m256i code = _mm256_and_si256(_mm256_srli_epi32(codes, 8 * column), _mm256_set1_epi32(0xFF));
    _mm256_store_ps(out + column * kPanelRows, _mm256_mul_ps(decode8(element, code), scale));
  }
}

void decode_panel(const PanelCodes& panel, std::int64_t cols, float* out) {
  const bool four_bits = panel.element == Element::e2m1;
  const std::int64_t lane_cols = four_bits ? 8 : 4;
  const std::int64_t scale_width = panel.scale == Element::f32 ? 4 : 1;
  for (std::int64_t k = 0; k < cols; k += panel.block_cols) {
    const unsigned char* unit = panel.units + k / panel.unit_cols * panel.unit_bytes;
    const std::int64_t in_unit = k % panel.unit_cols, block_end = k + panel.block_cols < cols ? k + panel.block_cols : cols;
    const unsigned char* lanes = unit + panel.scale_bytes + in_unit / lane_cols * 64;
    const unsigned char* scales = unit + in_unit / panel.block_cols * kPanelRows * scale_width;
    const __m256 scale[2] = {load_scales(panel.scale, scales), load_scales(panel.scale, scales + 8 * scale_width)};
    for (std::int64_t column = k; column < block_end; column += lane_cols, lanes += 64) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 32 * half));
        float* to = out + column * kPanelRows + 8 * half;
        if (four_bits) {
          decode_e2m1(codes, scale[half], to);
        } else {
          decode_bytes(panel.element, codes, scale[half], to);
        }
      }
    }
  }
}

template <int kRows>
[[gnu::always_inline]] inline void step(const float* a, const float* panel, __m256 (&acc)[kRows][2]) {
  const __m256 b0 = _mm256_load_ps(panel), b1 = _mm256_load_ps(panel + 8);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m256 value = _mm256_broadcast_ss(a + r);
    acc[r][0] = _mm256_fmadd_ps(value, b0, acc[r][0]);
    acc[r][1] = _mm256_fmadd_ps(value, b1, acc[r][1]);
  }
}

template <int kRows>
void multiply_tile(const float* a, const float* panel, std::int64_t depth, float* sums, bool first) {
  constexpr std::int64_t kAhead = 192;  // floats of A fetched ahead: A comes from L2
  __m256 acc[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    acc[r][0] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + r * kPanelRows);
    acc[r][1] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + r * kPanelRows + 8);
  }
  std::int64_t k = 0;
  for (; k + 8 <= depth; k += 8, a += 8 * kRows, panel += 8 * kPanelRows) {
#pragma GCC unroll 3
    for (int line = 0; line < (8 * kRows + 15) / 16; ++line)
      _mm_prefetch(reinterpret_cast<const char*>(a + kAhead + 16 * line), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) step<kRows>(a + u * kRows, panel + u * kPanelRows, acc);
  }
  for (; k < depth; ++k, a += kRows, panel += kPanelRows) step<kRows>(a, panel, acc);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(sums + r * kPanelRows, acc[r][0]);
    _mm256_storeu_ps(sums + r * kPanelRows + 8, acc[r][1]);
  }
}

void multiply(std::int64_t rows, const float* a, const float* panel, std::int64_t depth, float* sums, bool first) {
  switch (rows) {
    case 1: return multiply_tile<1>(a, panel, depth, sums, first);
    case 2: return multiply_tile<2>(a, panel, depth, sums, first);
    case 3: return multiply_tile<3>(a, panel, depth, sums, first);
    case 4: return multiply_tile<4>(a, panel, depth, sums, first);
    case 5: return multiply_tile<5>(a, panel, depth, sums, first);
    default: return multiply_tile<6>(a, panel, depth, sums, first);
  }
}

}  // namespace

const Leaves kLeaves{decode_panel, multiply, gemv_panel, decode_run, transpose, quantize_nvfp4};

}  // namespace finescale::cpu::avx2
