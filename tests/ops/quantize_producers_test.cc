// Producers: the value that is formed, against FP64, and that quantize forms exactly that value.
#include "support/quantize_sweep.h"
#include "support/quantized.h"

#include <finescale/producer.h>

#include <gtest/gtest.h>

#include <cmath>

namespace finescale::test {
namespace {

constexpr std::int64_t kRows = 6, kCols = 150;

struct Host {
  OwnedMatrix from, weight, residual;
};

Host operands(const Format& format, std::int64_t cols) {
  Host host{detail::owned({.format = format, .rows = kRows, .cols = cols}), detail::owned({.format = format, .rows = 1, .cols = kCols}),
            detail::owned({.format = format, .rows = kRows, .cols = kCols})};
  fill_random(host.from.view(), 1);
  fill_random(host.weight.view(), 2);
  fill_random(host.residual.view(), 3);
  return host;
}

float at(const OwnedMatrix& matrix, std::int64_t row, std::int64_t col) {
  return element_at(with_strides(Matrix(matrix.view())), 0, row, col);
}

QuantizeProblem problem_of(const Host& host, const MutableMatrix& to, Producer kind) {
  QuantizeProblem problem{.from = host.from.view(), .to = to};
  problem.producer.kind = kind;
  if (is_gated(kind)) problem.producer.order = Gate::halves_up_first;
  return problem;
}

double exact_activation(Producer kind, double z) {
  switch (kind) {
    case Producer::silu_mul: return z / (1 + std::exp(-z));
    case Producer::gelu_tanh_mul:
    case Producer::gelu_tanh: return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
    default: return 0.5 * z * std::erfc(-z / std::sqrt(2.0));
  }
}

// activation_error bounds the activation; one more rounding for the product with up.
TEST(QuantizeProducers, activations_are_as_exact_as_they_say) {
  for (const Producer kind :
       {Producer::silu_mul, Producer::gelu_tanh_mul, Producer::gelu_erf_mul, Producer::gelu_tanh, Producer::gelu_erf}) {
    const Host host = operands(kF32, is_gated(kind) ? 2 * kCols : kCols);
    const OwnedMatrix to = detail::owned({.format = kMxfp8E4m3, .rows = kRows, .cols = kCols});
    const QuantizeProblem problem = with_strides(problem_of(host, to.view(), kind));
    const ActivationError error = activation_error(activation_of(kind));
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kCols; ++c) {
        const double z = at(host.from, r, is_gated(kind) ? kCols + c : c), up = is_gated(kind) ? at(host.from, r, c) : 1.0;
        const double exact = exact_activation(kind, z);
        const double bound = error.relative * std::abs(exact) + error.per_input * std::abs(z) + error.absolute;
        EXPECT_NEAR(produced_value(problem, 0, r, c, 1.0f), exact * up,
                    bound * std::abs(up) + 0x1p-24 * (std::abs(exact) + bound) * std::abs(up));
      }
    }
  }
}

TEST(QuantizeProducers, gate_and_up_are_where_the_order_says) {
  for (const auto& [order, gate, up] :
       {std::tuple{Gate::halves_gate_first, 0, 2}, {Gate::halves_up_first, 2, 0}, {Gate::alternating_rows, 0, 1}}) {
    const float values[] = {1, 2, 3, 4};
    QuantizeProblem problem{.from = {.format = kF32, .rows = 1, .cols = 4}, .to = {.format = kNvfp4, .rows = 1, .cols = 2}};
    problem.from.data = reinterpret_cast<const std::byte*>(values);
    problem.producer = {.kind = Producer::silu_mul, .order = order};
    EXPECT_EQ(produced_value(with_strides(problem), 0, 0, 0, 1.0f), silu(values[gate]) * values[up]);
  }
}

// Quantizing through a producer is quantizing the produced values.
TEST(QuantizeProducers, quantize_forms_the_produced_values) {
  for (const Producer kind :
       {Producer::silu_mul, Producer::gelu_tanh_mul, Producer::gelu_erf_mul, Producer::gelu_tanh, Producer::gelu_erf}) {
    for (const Element intermediate : {Element::f32, Element::f16, Element::bf16}) {
      Matrix tags{.format = kNvfp4, .rows = kRows, .cols = kCols};
      tags.global_kind = GlobalScale::one;
      const Host host = operands(kBf16, is_gated(kind) ? 2 * kCols : kCols);
      const OwnedMatrix to = detail::owned(tags);
      QuantizeProblem problem = problem_of(host, to.view(), kind);
      problem.producer.intermediate = intermediate;
      const Status status = quantize(problem, {.device = &cpu_device()});
      ASSERT_TRUE(status) << status.sentence;
      std::vector<float> produced;
      for (std::int64_t i = 0; i < kRows * kCols; ++i)
        produced.push_back(produced_value(with_strides(problem), 0, i / kCols, i % kCols, 1.0f));
      const Quantized expected = quantized(kNvfp4, kRows, produced, {.global = GlobalScale::one, .from = Format{intermediate}});
      expect_same(expected.matrix, to);
    }
  }
}

// The row factor is 1 / sqrt(mean + eps) with four FP32 roundings after an FP64 sum; the value has two more.
TEST(QuantizeProducers, rms_norm_is_as_exact_as_its_roundings) {
  for (const bool with_residual : {false, true}) {
    const Host host = operands(kBf16, kCols), before = operands(kBf16, kCols);
    Matrix tags{.format = kFp8E4m3Row128, .rows = kRows, .cols = kCols};
    const OwnedMatrix to = detail::owned(tags);
    QuantizeProblem problem = problem_of(host, to.view(), Producer::rms_norm);
    problem.producer.weight = host.weight.view();
    problem.producer.weight_offset = 1.0f;
    problem.producer.eps = 1e-5f;
    if (with_residual) problem.producer.residual = host.residual.view();
    const Status status = quantize(problem, {.device = &cpu_device()});
    ASSERT_TRUE(status) << status.sentence;
    const std::vector<float> values = dequantized(to.view());
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto input = [&](std::int64_t c) {
        const float x = at(before.from, r, c);
        return with_residual ? decode(Element::bf16, encode(Element::bf16, x + at(before.residual, r, c))) : x;
      };
      long double sum = 0;
      for (std::int64_t c = 0; c < kCols; ++c) sum += static_cast<long double>(input(c)) * input(c);
      const long double factor = 1 / std::sqrt(sum / kCols + static_cast<long double>(problem.producer.eps));
      double row_amax = 0;
      for (std::int64_t c = 0; c < kCols; ++c) {
        row_amax = std::max(row_amax, std::abs(static_cast<double>(input(c) * factor * (at(before.weight, 0, c) + 1.0L))));
      }
      for (std::int64_t c = 0; c < kCols; ++c) {
        EXPECT_EQ(at(host.residual, r, c), with_residual ? input(c) : at(before.residual, r, c)) << "the sum is written back";
        const double exact = static_cast<double>(input(c) * factor * (at(before.weight, 0, c) + 1.0L));
        const float x =
            problem.producer.kind == Producer::rms_norm ? produced_value(with_strides(problem), 0, r, c, static_cast<float>(factor)) : 0;
        EXPECT_NEAR(x, exact, 8 * 0x1p-24 * std::abs(exact));
        // E4M3 keeps 4 significant bits; below its normal range the step is 2^-9 of a scale of at most row_amax / 448.
        EXPECT_NEAR(values[static_cast<std::size_t>(r * kCols + c)], exact,
                    std::abs(exact) * (0x1p-4 + 0x1p-20) + row_amax / 448 * 0x1p-10);
      }
    }
  }
}

TEST(QuantizeProducers, rms_factor_of_exact_sums) {
  EXPECT_EQ(rms_factor(16.0, 4, 0.0f), 0.5f);
  EXPECT_EQ(rms_factor(0.0, 4, 0.0625f), 4.0f);
}

}  // namespace
}  // namespace finescale::test
