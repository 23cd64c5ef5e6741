// Leaves: the innermost loops, one table per instruction set. The drivers (product.cc, quantize_driver.cc, ...) hold the algorithm,
// blocking and tails; a leaf knows one step of it.
//
//   decode_panel   16 rows of prepared B, codes times block scales -> FP32, [k][16]
//   multiply       a tile of 1..6 rows of A, [k][rows], times a decoded panel -> sums [row][16]
//   gemv_panel     the same sums for 1..4 rows of A straight from the prepared bytes, without a decoded panel
//   decode_run     a run of codes of one row -> FP32 elements, block scales left out
//   transpose      16 rows of FP32 -> [k][16]
//   quantize_nvfp4 blocks of 16 values -> E4M3 scales and E2M1 codes, the bytes of block_quantizer.h
//
// Plain types only and no inline function: a file compiled for an instruction set may not leave a copy of one behind.
#pragma once

#include <finescale/formats/element.h>

#include <cstdint>

namespace finescale::cpu {

inline constexpr std::int64_t kPanelRows = 16;  // rows of B that a decoded panel holds: two AVX2 registers of FP32
inline constexpr std::int64_t kTileRows = 6;    // rows of A a micro-kernel takes: 12 of 16 AVX2 registers are its sums
inline constexpr std::int64_t kDepth = 256;     // columns of K decoded at once: a panel is 16 KiB and stays in L1
inline constexpr std::int64_t kGemvRows = 4;    // rows of A that gemv_panel takes at once

// Between them a block's sum of products of x and an element, either times 2^80, neither overflows nor loses bits to subnormals,
// before and after the block scale times 2^-120 (kernels/gemv_nvfp4_avx2.cc).
inline constexpr float kNarrowLow = 0x1p-50f, kNarrowHigh = 0x1p36f;

// Bytes of a panel in layout panel16, from one of its units on (layouts/prepared/panel16.h).
struct PanelCodes {
  const unsigned char* units;
  std::int64_t unit_bytes, scale_bytes;  // of a unit, and of its block scales
  std::int64_t unit_cols, block_cols;    // block_cols = unit_cols where the format has no block scales
  Element element, scale;
};

struct Leaves {
  // [k][16] for k = 0 .. cols - 1; columns up to the next multiple of 8 may be written.
  void (*decode_panel)(const PanelCodes& panel, std::int64_t cols, float* out);
  // sums[r][16] (+)= sum over k ascending of a[k][r] * panel[k][16]; `first` starts from zero.
  void (*multiply)(std::int64_t rows, const float* a, const float* panel, std::int64_t depth, float* sums, bool first);
  // sums[r][16] = the product of row r of x with the panel. x: columns of every four in the order 0 2 1 3, zeros up to the end
  // of the last unit. narrow: every x is 0 or of a magnitude from kNarrowLow to kNarrowHigh. Null: this table has none.
  void (*gemv_panel)(const PanelCodes& panel, std::int64_t cols, std::int64_t rows, const float* x, std::int64_t x_stride, bool narrow,
                     float* sums);
  // Elements first .. first + count - 1 of a packed row.
  void (*decode_run)(Element element, const unsigned char* row, std::int64_t first, bool high_nibble_first, std::int64_t count, float* out);
  // out[k][16] from in[row][k], rows `stride` apart.
  void (*transpose)(const float* in, std::int64_t stride, std::int64_t count, float* out);
  // At most 64 blocks, one scale code and 8 code bytes each, low nibble first; g is valid (is_valid_global). Null: none.
  void (*quantize_nvfp4)(const float* x, std::int64_t blocks, float g, std::uint8_t* scales, std::uint8_t* codes);
};

namespace portable {
extern const Leaves kLeaves;
}
namespace avx2 {
extern const Leaves kLeaves;
}

}  // namespace finescale::cpu
