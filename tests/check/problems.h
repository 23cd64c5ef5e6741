// Products with operands of their own, and kernels to judge: a right one and wrong ones.
#pragma once

#include "check/operands.h"
#include "check/owned_matrix.h"

#include <finescale/access.h>
#include <finescale/check.h>
#include <finescale/finish.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace finescale {

inline Matrix tags(const Format& format, std::int64_t rows, std::int64_t cols, std::int64_t batch = 1) {
  Matrix matrix;
  matrix.format = format;
  matrix.batch = batch;
  matrix.rows = rows;
  matrix.cols = cols;
  if (format.global) matrix.global_kind = GlobalScale::one;
  return matrix;
}

inline OwnedMatrix random_operand(const Matrix& shape, std::uint64_t seed, Values values = Values::usual) {
  auto made = random_matrix(shape, seed, values);
  EXPECT_TRUE(made) << made.status().sentence;
  return made ? *std::move(made) : OwnedMatrix{};
}

// A matrix of one code, one scale code and one global.
inline OwnedMatrix filled(const Matrix& shape, float element, float scale = 1.0f, float global = 1.0f) {
  OwnedMatrix made = random_operand(shape, 0);
  const MutableMatrix m = with_strides(made.view());
  for (std::int64_t b = 0; b < m.batch; ++b) {
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t c = 0; c < m.cols; ++c) {
        set_code(m, b, r, c, encode(m.format.element, element));
        if (m.format.has_scales()) set_scale_code(m, b, r, c, encode(m.format.scale, scale));
      }
    }
  }
  for (std::int64_t i = 0; i < made.global_count(); ++i) m.global[i] = global;
  return made;
}

inline void put(const OwnedMatrix& matrix, std::int64_t row, std::int64_t col, float value, std::int64_t batch = 0) {
  const MutableMatrix m = with_strides(matrix.view());
  set_code(m, batch, row, col, encode(m.format.element, value));
}

inline float get(const OwnedMatrix& matrix, std::int64_t row, std::int64_t col, std::int64_t batch = 0) {
  return element_at(with_strides(Matrix(matrix.view())), batch, row, col);
}

struct OwnedProblem {
  OwnedMatrix a, b, b2, d, bias, residual;
  GemmProblem problem;

  OwnedProblem(OwnedMatrix a_in, OwnedMatrix b_in, const Format& out, Gate gate = Gate::none) : a(std::move(a_in)), b(std::move(b_in)) {
    problem.a = a.view();
    problem.b = b.view();
    problem.epilogue.gate = gate;
    const bool halves = gate != Gate::none && gate != Gate::second_matrix;
    d = random_operand(tags(out, problem.a.rows, halves ? problem.b.rows / 2 : problem.b.rows, problem.a.batch), 99);
    problem.d = d.view();
  }
  void set_bias(OwnedMatrix values) {
    bias = std::move(values);
    problem.epilogue.bias = bias.view();
  }
  void set_residual(OwnedMatrix values, float beta = 1.0f) {
    residual = std::move(values);
    problem.epilogue.residual = residual.view();
    problem.epilogue.beta = beta;
  }
  CheckReport judge(const Accumulation& accumulation = {}, const CheckOptions& options = {}) const {
    const auto report = check(problem, d.view(), accumulation, options);
    EXPECT_TRUE(report) << report.status().sentence;
    return report ? *report : CheckReport{};
  }
  ExactOutput exact(std::int64_t row, std::int64_t col, std::int64_t batch = 0) const {
    const auto output = exact_output(problem, batch, row, col);
    EXPECT_TRUE(output) << output.status().sentence;
    return output ? *output : ExactOutput{};
  }
};

// How a kernel forms its sum: over k of (a sa) (b sb) of one row of A and one of B.
using Dot = std::function<float(const Matrix& a, std::int64_t a_batch, std::int64_t a_row, const Matrix& b, std::int64_t b_batch,
                                std::int64_t b_row)>;

inline float value_at(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t k) {
  return element_at(m, batch, row, k) * block_scale_at(m, batch, row, k);
}

inline float sequential_dot(const Matrix& a, std::int64_t a_batch, std::int64_t a_row, const Matrix& b, std::int64_t b_batch,
                            std::int64_t b_row) {
  float sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) sum += value_at(a, a_batch, a_row, k) * value_at(b, b_batch, b_row, k);
  return sum;
}

inline float double_dot(const Matrix& a, std::int64_t a_batch, std::int64_t a_row, const Matrix& b, std::int64_t b_batch,
                        std::int64_t b_row) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) {
    sum += static_cast<double>(value_at(a, a_batch, a_row, k)) * static_cast<double>(value_at(b, b_batch, b_row, k));
  }
  return static_cast<float>(sum);
}

// Writes d with the finish that every kernel shares.
inline void multiply(const OwnedProblem& owned, const Dot& dot) {
  GemmProblem p = owned.problem;
  p.a = with_strides(p.a);
  p.b = with_strides(p.b);
  p.b2 = with_strides(p.b2);
  p.d = with_strides(p.d);
  p.epilogue.bias = with_strides(p.epilogue.bias);
  p.epilogue.residual = with_strides(p.epilogue.residual);
  const Gate gate = p.epilogue.gate;
  for (std::int64_t b = 0; b < p.d.batch; ++b) {
    for (std::int64_t m = 0; m < p.d.rows; ++m) {
      for (std::int64_t n = 0; n < p.d.cols; ++n) {
        const bool second = gate == Gate::second_matrix;
        const float acc = dot(p.a, b, m, p.b, b, gate == Gate::none ? n : gate_row(gate, n, p.d.cols));
        const float up = gate == Gate::none ? 0.0f : dot(p.a, b, m, second ? p.b2 : p.b, b, second ? n : up_row(gate, n, p.d.cols));
        store_plain(p.d, b, m, n, finish_value(p, {b, m, n, b, m, b}, acc, up));
      }
    }
  }
}

}  // namespace finescale
