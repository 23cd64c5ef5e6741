// Operands of one product for the CPU kernel tests: random, guarded, B optionally prepared.
#pragma once

#include "check/operands.h"
#include "support/run_kernels.h"

#include <finescale/access.h>
#include <finescale/check.h>
#include <finescale/gemm.h>
#include <finescale/prepare.h>

#include <cstdint>
#include <string>
#include <vector>

namespace finescale::test {

struct GemmCase {
  Format a = kBf16, b = kNvfp4, d = kF32;
  std::int64_t batch = 1, m = 1, n = 16, k = 64;
  bool prepared = true;
  CodeLayout b_codes = CodeLayout::row_major;
  ScaleLayout b_scales = ScaleLayout::linear;
  Gate gate = Gate::none;
  Activation activation = Activation::none;
  bool bias = false, residual = false;
  Values values = Values::usual;
  std::uint64_t seed = 1;

  std::string label() const {
    return std::string(format_name(a)) + " x " + std::string(format_name(b)) + (prepared ? " prepared" : "") + " -> " +
           std::string(format_name(d)) + ", batch " + std::to_string(batch) + ", " + std::to_string(m) + "x" + std::to_string(n) + "x" +
           std::to_string(k) + ", gate " + std::to_string(static_cast<int>(gate)) + ", act " +
           std::to_string(static_cast<int>(activation)) + (bias ? ", bias" : "") + (residual ? ", residual" : "");
  }
};

class GemmOperands {
 public:
  explicit GemmOperands(const GemmCase& c) : case_(c) {
    a_ = random(matrix(c.a, c.m, c.k), 1);
    const bool halves = c.gate != Gate::none && c.gate != Gate::second_matrix;
    b_ = weights(halves ? 2 * c.n : c.n, 2);
    problem_.a = a_.view();
    problem_.b = b_.view();
    if (c.gate == Gate::second_matrix) {
      b2_ = weights(c.n, 3);
      problem_.b2 = b2_.view();
    }
    problem_.epilogue.gate = c.gate;
    problem_.epilogue.activation = c.activation;
    problem_.epilogue.alpha = 0.75f;
    if (c.bias) {
      bias_ = random(matrix(kF32, 1, c.gate == Gate::none ? c.n : 2 * c.n), 4);
      problem_.epilogue.bias = bias_.view();
    }
    if (c.residual) {
      residual_ = random(matrix(kBf16, c.m, c.n), 5);
      problem_.epilogue.residual = residual_.view();
    }
  }

  // A in f32 times a power of two; alpha takes it back, so that results stay in range.
  void scale_a(float factor) {
    for (std::int64_t i = 0; i < case_.batch * case_.m * case_.k; ++i) reinterpret_cast<float*>(a_.view().data)[i] *= factor;
    problem_.epilogue.alpha /= factor;
  }

  void set_scale_of_b(std::int64_t row, std::int64_t col, std::uint32_t code) { set_scale_code(b_.view(), 0, row, col, code); }

  // Writes into a freshly poisoned D; the view lives as long as `d`.
  GemmProblem problem(OwnedMatrix& d) const {
    Matrix tags = matrix(case_.d, case_.m, case_.n);
    if (!case_.d.is_plain() && case_.d.global) tags.global_kind = GlobalScale::one;
    d = *OwnedMatrix::make(tags);
    if (d.global_count() != 0) *d.view().global = 0.5f;
    GemmProblem problem = problem_;
    problem.d = d.view();
    return problem;
  }

 private:
  Matrix matrix(const Format& format, std::int64_t rows, std::int64_t cols) const {
    Matrix tags{.format = format, .batch = case_.batch, .rows = rows, .cols = cols};
    if (format.global) tags.global_kind = GlobalScale::one;
    return tags;
  }
  OwnedMatrix random(const Matrix& tags, std::uint64_t seed) const {
    return std::move(*random_matrix(tags, case_.seed * 16 + seed, case_.values));
  }

  OwnedMatrix weights(std::int64_t rows, std::uint64_t seed) {
    Matrix tags = matrix(case_.b, rows, case_.k);
    tags.codes = case_.b_codes;
    tags.scale_layout = case_.b_scales;
    OwnedMatrix plain = random(tags, seed);
    if (!case_.prepared) return plain;
    Matrix target = tags;
    target.codes = static_cast<CodeLayout>(Panel16::kId);
    OwnedMatrix prepared = *OwnedMatrix::make(target);
    const PrepareProblem job{.from = plain.view(), .to = prepared.view(), .kernel = "prepare_reference"};
    const Execution execution{.device = &cpu_device()};
    EXPECT_TRUE(prepare(job, execution)) << prepare(job, execution).sentence;
    for (std::int64_t i = 0; i < prepared.global_count(); ++i) prepared.view().global[i] = plain.view().global[i];
    return prepared;
  }

  GemmCase case_;
  OwnedMatrix a_, b_, b2_, bias_, residual_;
  GemmProblem problem_;
};

// The CPU rows of an op, the reference left out.
template <class Problem>
std::vector<const Kernel<Problem>*> cpu_rows() {
  std::vector<const Kernel<Problem>*> rows;
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) {
      if (kernel.target.kind == DeviceKind::cpu && !is_reference(kernel.name)) rows.push_back(&kernel);
    }
  }
  return rows;
}

}  // namespace finescale::test
