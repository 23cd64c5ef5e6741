// What may follow a product: D = out(act(z) + beta * C), z = alpha * gA * gB * acc + bias[n]; gated:
// D = out(act(z1) * z2 + beta * C). FP32 from the accumulator on, one rounding at the end.
#pragma once

#include <finescale/matrix.h>

#include <cstdint>

namespace finescale {

enum class Activation : std::uint8_t { none, gelu_tanh, gelu_erf, silu, relu, relu2 };

// Where z1 (gate) and z2 (up) lie among the 2N rows of B and of the bias. There is no default.
enum class Gate : std::uint8_t { none, halves_gate_first, halves_up_first, alternating_rows, second_matrix };

struct Epilogue {
  float alpha = 1.0f;
  float beta = 1.0f;  // factor of the residual; 0: it is not read
  Matrix bias{};      // f32, f16 or bf16, batch x 1 x N (gated: 2N, in the order of B's rows; second_matrix: gate, then up)
  Matrix residual{};  // f32, f16 or bf16, batch x M x N; may be D itself where type and strides are equal
  Activation activation = Activation::none;
  Gate gate = Gate::none;
};

// Row of B (and entry of the bias) that holds the gate, and the up half, of output column n of N.
// second_matrix: the gate is row n of b, up is row n of b2; in the bias both halves stand one after the other.
FINESCALE_HD constexpr std::int64_t gate_row(Gate gate, std::int64_t n, std::int64_t columns) {
  return gate == Gate::alternating_rows ? 2 * n : gate == Gate::halves_up_first ? columns + n : n;
}
FINESCALE_HD constexpr std::int64_t up_row(Gate gate, std::int64_t n, std::int64_t columns) {
  return gate == Gate::alternating_rows ? 2 * n + 1 : gate == Gate::halves_up_first ? n : columns + n;
}

}  // namespace finescale
