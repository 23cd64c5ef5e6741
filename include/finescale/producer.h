// Producers: the FP32 value that quantize forms from its input before it is quantized. One text for every backend.
//
//   silu_mul, gelu_*_mul   y = act(gate) * up, both columns of `from`
//   gelu_tanh, gelu_erf    y = gelu(x)
//   rms_norm               y = x r (weight + weight_offset), r = 1 / sqrt(fp32(sum of x^2 / K) + eps), the sum in FP64;
//                          with a residual, x is first replaced by residual = round(x + residual), which stays written
//
// Then y is rounded to `intermediate`.
#pragma once

#include <finescale/access.h>
#include <finescale/activation.h>
#include <finescale/quantize.h>

#include <cmath>
#include <cstdint>

namespace finescale {

// One element of a plain matrix, an operand that the op reads or one that it also writes.
template <class Byte, class Float>
FINESCALE_HD inline float plain_value(const BasicMatrix<Byte, Float>& matrix, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const auto place = code_place(matrix, batch, row, col);
  return decode(matrix.format.element, load_code(place.base, place.index, bits(matrix.format.element), false));
}

// residual = round(x + residual) at one element; once, before anything else reads the row.
FINESCALE_HD inline void add_residual(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const MutableMatrix& residual = problem.producer.residual;
  const float sum = plain_value(problem.from, batch, row, col) + plain_value(residual, batch, row, col);
  const float stored = is_nan(sum) ? bits_float(0x7FC00000u) : sum;  // a NaN has one form, so that bytes agree everywhere
  set_code(residual, batch, row, col, encode(residual.format.element, stored));
}

// What rms_norm normalises: the input, or the sum that add_residual has left in the residual.
FINESCALE_HD inline float rms_input(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const MutableMatrix& residual = problem.producer.residual;
  return residual.absent() ? plain_value(problem.from, batch, row, col) : plain_value(residual, batch, row, col);
}

// r of a row from the FP64 sum of its squares; each product is exact in FP64.
FINESCALE_HD inline float rms_factor(double sum_of_squares, std::int64_t cols, float eps) {
  const float mean = static_cast<float>(sum_of_squares / static_cast<double>(cols));
  return 1.0f / sqrtf(mean + eps);
}

FINESCALE_HD constexpr Activation activation_of(Producer producer) {
  switch (producer) {
    case Producer::silu_mul: return Activation::silu;
    case Producer::gelu_tanh_mul:
    case Producer::gelu_tanh: return Activation::gelu_tanh;
    case Producer::gelu_erf_mul:
    case Producer::gelu_erf: return Activation::gelu_erf;
    case Producer::none:
    case Producer::rms_norm: break;
  }
  return Activation::none;
}

// The value to quantize at one element of `to`. r: rms_factor of the row, read by rms_norm only.
FINESCALE_HD inline float produced_value(const QuantizeProblem& problem, std::int64_t batch, std::int64_t row, std::int64_t col, float r) {
  const ProducerParameters& producer = problem.producer;
  float value;
  if (is_gated(producer.kind)) {
    const float gate = plain_value(problem.from, batch, row, gate_row(producer.order, col, problem.to.cols));
    const float up = plain_value(problem.from, batch, row, up_row(producer.order, col, problem.to.cols));
    value = activate(activation_of(producer.kind), gate) * up;
  } else if (producer.kind == Producer::rms_norm) {
    const float weight = producer.weight.absent() ? 1.0f : plain_value(producer.weight, 0, 0, col);
    value = rms_input(problem, batch, row, col) * r * (weight + producer.weight_offset);
  } else {
    value = activate(activation_of(producer.kind), plain_value(problem.from, batch, row, col));
  }
  return decode(producer.intermediate, encode(producer.intermediate, value));
}

}  // namespace finescale
