// The constants of the error bound (docs/numerics.md):
//
//   |D - exact| <= u_out |exact| + eta_out + (1 + u_out) E        E: the FP32 error before the output rounding
#pragma once

#include <finescale/formats/element.h>
#include <finescale/kernel.h>

#include <cstdint>

namespace finescale {

inline constexpr double kUnit = 0x1p-24;    // u: one FP32 rounding to nearest
inline constexpr double kFlush = 0x1p-126;  // nu: what an FP32 result below the smallest normal may lose, flushed or not
inline constexpr double kLargest = 0x1.fffffep127 * (1 - 0x1p-20);  // beyond it FP32 may overflow
inline constexpr double kSecondOrder = 1 + 0x1p-20;                 // products of two rounding errors, and the evaluation of E itself

// c: the sum of K products, its scales, alpha and the globals are off by at most c * sum |a sa b sb| |alpha gA gB|.
double accumulation_factor(const Accumulation& accumulation, std::int64_t k);

// The rounding of an output to f32, f16 or bf16.
struct OutputRounding {
  double unit = 0;      // u_out
  double eta = 0;       // half the smallest subnormal
  double overflow = 0;  // from here on the result is Inf
};
OutputRounding output_rounding(Element element);

}  // namespace finescale
