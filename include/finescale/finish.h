// finish: from an FP32 accumulator to one output, in the exact order of docs/products.md. The reference, the oracle, the portable
// CPU kernels and the generic CUDA kernels call these functions; tuned kernels match them bit for bit, but for a joined factor.
//
//   z = alpha * gA * gB * acc + bias[n]      value = act(z) + beta * C[m,n]      gated: value = act(z_gate) * z_up + beta * C[m,n]
//
// FP32 throughout; the only rounding after it is the store. Strides must be filled in (with_strides).
#pragma once

#include <finescale/access.h>
#include <finescale/activation.h>
#include <finescale/epilogue.h>
#include <finescale/gemm.h>

#include <cstdint>

namespace finescale {

namespace detail {

// value = mantissa * 2^exponent with 1 <= |mantissa| < 2; zero, Inf and NaN keep exponent 0.
struct SplitFloat {
  float mantissa;
  std::int32_t exponent;
};

FINESCALE_HD constexpr SplitFloat split_float(float value) {
  if (value == 0.0f || !is_finite(value)) return {value, 0};
  const bool subnormal = (float_bits(value) & 0x7F800000u) == 0;
  const std::uint32_t bits = float_bits(subnormal ? value * 0x1p64f : value);
  const std::int32_t exponent = static_cast<std::int32_t>((bits >> 23) & 0xFFu) - 127 - (subnormal ? 64 : 0);
  return {bits_float((bits & 0x807FFFFFu) | 0x3F800000u), exponent};
}

// 2^exponent, -126 <= exponent <= 127.
FINESCALE_HD constexpr float power_of_two(std::int32_t exponent) { return bits_float(static_cast<std::uint32_t>(exponent + 127) << 23); }

FINESCALE_HD constexpr bool is_normal(float value) {
  const std::uint32_t exponent = float_bits(value) & 0x7F800000u;
  return exponent != 0 && exponent != 0x7F800000u;
}

}  // namespace detail

// ((a * b) * c) * d, one FP32 rounding a product, as if the exponents of the first two products had no limits: only the result
// overflows or becomes subnormal. Zero, Inf and NaN behave as in IEEE.
FINESCALE_HD constexpr float product_in_order(float a, float b, float c, float d) {
  const float ab = a * b;
  const float abc = ab * c;
  if (detail::is_normal(ab) && detail::is_normal(abc)) return abc * d;
  const auto sa = detail::split_float(a), sb = detail::split_float(b), sc = detail::split_float(c), sd = detail::split_float(d);
  // Half of the power goes to either factor of the last product, so that it alone rounds; past 250 all is Inf or zero.
  const std::int32_t sum = sa.exponent + sb.exponent + sc.exponent + sd.exponent;
  const std::int32_t exponent = sum < -250 ? -250 : sum > 248 ? 248 : sum;
  const std::int32_t half = exponent / 2;
  return sa.mantissa * sb.mantissa * sc.mantissa * detail::power_of_two(half) * (sd.mantissa * detail::power_of_two(exponent - half));
}

// Examples that leave the range on the way stand in the tests: nvcc does not evaluate them at compile time.
static_assert(product_in_order(0x1.8p-60f, 0x1p-60f, 0x1p100f, 0x1p20f) == 0x1.8p0f &&
              product_in_order(0.0f, 0x1p127f, 8.0f, 1.0f) == 0.0f);

// Which output, and what its factors are addressed by. A plain product: every batch is `batch`, a_row = row.
struct OutputIndex {
  std::int64_t batch = 0, row = 0, col = 0;  // of D and of the residual
  std::int64_t a_batch = 0, a_row = 0;       // global scale of A: a gathered row has the one of the row that it reads
  std::int64_t b_batch = 0;                  // global scale of B, and bias: the group of a grouped product
};

// alpha * gA * gB * acc + bias for row `b_row` of `b` (b or b2); `bias_col` is its entry of the bias.
FINESCALE_HD inline float finish_linear(const GemmProblem& problem, const OutputIndex& at, const Matrix& b, std::int64_t b_row,
                                        std::int64_t bias_col, float acc) {
  const float z =
      product_in_order(acc, problem.epilogue.alpha, global_at(problem.a, at.a_batch, at.a_row), global_at(b, at.b_batch, b_row));
  return problem.epilogue.bias.absent() ? z : z + element_at(problem.epilogue.bias, at.b_batch, 0, bias_col);
}

// act(z), gated act(z_gate) * z_up: everything before the residual. Not gated: acc_up is ignored.
FINESCALE_HD inline float finish_activation(const GemmProblem& problem, const OutputIndex& at, float acc, float acc_up) {
  const Epilogue& epilogue = problem.epilogue;
  if (epilogue.gate == Gate::none) return activate(epilogue.activation, finish_linear(problem, at, problem.b, at.col, at.col, acc));
  const std::int64_t gate = gate_row(epilogue.gate, at.col, problem.d.cols), up = up_row(epilogue.gate, at.col, problem.d.cols);
  const bool second = epilogue.gate == Gate::second_matrix;
  const float z_gate = finish_linear(problem, at, problem.b, gate, gate, acc);
  const float z_up = finish_linear(problem, at, second ? problem.b2 : problem.b, second ? at.col : up, up, acc_up);
  return activate(epilogue.activation, z_gate) * z_up;
}

// The FP32 value of one output before its rounding. beta = 0 never reads the residual.
FINESCALE_HD inline float finish_value(const GemmProblem& problem, const OutputIndex& at, float acc, float acc_up) {
  const float value = finish_activation(problem, at, acc, acc_up);
  const Epilogue& epilogue = problem.epilogue;
  if (epilogue.residual.absent() || epilogue.beta == 0.0f) return value;
  return value + epilogue.beta * element_at(epilogue.residual, at.batch, at.row, at.col);
}

// The FP32 value as it is stored: a NaN has one form. Whose sign and payload a sum of NaNs keeps is up to the instructions.
FINESCALE_HD constexpr float stored_value(float value) { return is_nan(value) ? bits_float(0x7FC00000u) : value; }

// One rounding to f32, f16 or bf16; beyond the range: Inf. A block-format D is quantized (block_quantizer.h), never stored here.
FINESCALE_HD inline void store_plain(const MutableMatrix& d, std::int64_t batch, std::int64_t row, std::int64_t col, float value) {
  set_code(d, batch, row, col, encode(d.format.element, stored_value(value)));
}

}  // namespace finescale
