// The bound accepts right kernels and catches wrong ones.
#include "check/error_model.h"
#include "check/problems.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace finescale {
namespace {

constexpr Gate kGates[] = {Gate::none, Gate::halves_gate_first, Gate::halves_up_first, Gate::alternating_rows, Gate::second_matrix};
constexpr Activation kActivations[] = {Activation::none, Activation::relu,      Activation::relu2,
                                       Activation::silu, Activation::gelu_tanh, Activation::gelu_erf};

OwnedProblem random_problem(const Format& a, const Format& b, const Format& d, std::uint64_t seed, std::int64_t k = 200,
                            Gate gate = Gate::none, Values values = Values::usual) {
  return OwnedProblem(random_operand(tags(a, 5, k), seed, values), random_operand(tags(b, 12, k), seed + 1, values), d, gate);
}

// FMA into eight lanes that are added at the end.
float fma_lanes(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float lanes[8] = {};
  for (std::int64_t k = 0; k < a.cols; ++k) lanes[k % 8] = std::fma(value_at(a, ab, m, k), value_at(b, bb, n, k), lanes[k % 8]);
  for (int step = 4; step > 0; step /= 2) {
    for (int lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
  }
  return lanes[0];
}

// Scales, joined, after the sum of sixteen products of elements; two parts of K added last.
float block_scaled(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float parts[2] = {};
  for (std::int64_t first = 0; first < a.cols; first += 16) {
    float sum = 0;
    for (std::int64_t k = first; k < std::min(first + 16, a.cols); ++k) sum += element_at(a, ab, m, k) * element_at(b, bb, n, k);
    parts[first < a.cols / 2 ? 0 : 1] += sum * (block_scale_at(a, ab, m, first) * block_scale_at(b, bb, n, first));
  }
  return parts[0] + parts[1];
}

// The reference's order: ((a sa) b) sb, from the last column to the first.
float scales_in_turn(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float sum = 0;
  for (std::int64_t k = a.cols - 1; k >= 0; --k) {
    sum += element_at(a, ab, m, k) * block_scale_at(a, ab, m, k) * element_at(b, bb, n, k) * block_scale_at(b, bb, n, k);
  }
  return sum;
}

const Dot kRightDots[] = {double_dot, sequential_dot, fma_lanes, block_scaled, scales_in_turn};

TEST(RightKernel, passes_with_every_pair_of_formats) {
  for (const Values values : {Values::usual, Values::wide}) {
    for (const NamedFormat& a : kFormats) {
      for (const NamedFormat& b : kFormats) {
        if (b.format.is_plain()) continue;
        for (const Format& d : {kF32, kF16, kBf16}) {
          const OwnedProblem p = random_problem(a.format, b.format, d, 11, 200, Gate::none, values);
          for (const Dot& dot : kRightDots) {
            multiply(p, dot);
            const CheckReport report = p.judge();
            EXPECT_LE(report.worst, 1.0) << a.name << " x " << b.name << " -> " << format_name(d);
            EXPECT_EQ(report.checked, 60);
          }
        }
      }
    }
  }
}

TEST(RightKernel, passes_with_every_epilogue) {
  for (const Gate gate : kGates) {
    for (const Activation activation : kActivations) {
      for (const Format& d : {kF32, kBf16}) {
        OwnedProblem p = random_problem(kBf16, kNvfp4, d, 21, 96, gate);
        p.b2 = random_operand(tags(kNvfp4, 12, 96), 23);
        if (gate == Gate::second_matrix) p.problem.b2 = p.b2.view();
        p.problem.epilogue.activation = activation;
        p.problem.epilogue.alpha = -1.7f;
        p.set_bias(random_operand(tags(kF32, 1, gate == Gate::second_matrix ? 24 : 12), 31));
        multiply(p, sequential_dot);
        EXPECT_LE(p.judge().worst, 1.0) << static_cast<int>(gate) << ' ' << static_cast<int>(activation);
        p.set_residual(random_operand(tags(kF16, 5, p.problem.d.cols), 41), 3.3f);
        multiply(p, sequential_dot);
        EXPECT_LE(p.judge().worst, 1.0) << static_cast<int>(gate) << ' ' << static_cast<int>(activation);
      }
    }
  }
}

// K = 1, where the roundings of scales, alpha and globals are all of the error.
TEST(RightKernel, passes_where_only_factors_round) {
  OwnedProblem p(random_operand(tags(kF32, 40, 1), 51), random_operand(tags(kFp8E4m3Row128, 40, 1), 52), kF32);
  const float globals[2] = {1.1f, 0.7f};
  p.problem.a.global_kind = p.problem.b.global_kind = GlobalScale::one;
  p.problem.a.global = &globals[0];
  p.problem.b.global = &globals[1];
  p.problem.epilogue.alpha = 1.3f;
  for (const Dot& dot : kRightDots) {
    multiply(p, dot);
    EXPECT_LE(p.judge().worst, 1.0);
    EXPECT_GT(p.judge().worst, 0.2);
  }
}

// 1 + j 2^-23 plus a product just below half a unit: z loses nearly u, and its square rounds once more.
TEST(RightKernel, passes_where_the_bias_takes_the_product_away) {
  OwnedProblem p(filled(tags(kF32, 1, 1), 0x1.ff8p-25f), filled(tags(kMxfp4, 500, 1), 1.0f), kF32);
  p.problem.epilogue.activation = Activation::relu2;
  p.set_bias(filled(tags(kF32, 1, 500), 1.0f));
  for (int n = 0; n < 500; ++n) put(p.bias, 0, n, 1.0f + static_cast<float>(n) * 0x1p-23f);
  multiply(p, sequential_dot);
  EXPECT_LE(p.judge().worst, 1.0);
  EXPECT_GT(p.judge().worst, 0.4);
}

TEST(RightKernel, passes_where_the_residual_is_nearly_all) {
  OwnedProblem p(filled(tags(kF32, 20, 1), 0x1p-26f), filled(tags(kMxfp4, 20, 1), 1.0f), kF32);
  p.set_residual(random_operand(tags(kF32, 20, 20), 53), 1.1f);
  multiply(p, sequential_dot);
  EXPECT_LE(p.judge().worst, 1.0);
  EXPECT_GT(p.judge().worst, 0.5);
}

// up = 6 p - 6 q cancels, and its rounding error is multiplied by an exact gate.
TEST(RightKernel, passes_where_the_up_half_cancels) {
  Matrix both = tags(kMxfp4, 2, 3);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    OwnedProblem p(filled(tags(kF32, 1, 3), 1.0f), filled(both, 0.0f), kF32, Gate::halves_gate_first);
    put(p.b, 0, 2, 4.0f);
    put(p.b, 1, 0, 6.0f);
    put(p.b, 1, 1, -6.0f);
    put(p.a, 0, 0, static_cast<float>(1 + hash_unit(54, seed)));
    put(p.a, 0, 1, get(p.a, 0, 0) + 0x1.8p-22f);
    multiply(p, sequential_dot);
    EXPECT_LE(p.judge().worst, 1.0) << seed;
  }
}

TEST(RightKernel, passes_among_subnormals_flushed_or_not) {
  OwnedProblem p(random_operand(tags(kF32, 4, 64), 61), random_operand(tags(kMxfp4, 6, 64), 62), kF32);
  for (int m = 0; m < 4; ++m) {
    for (int k = 0; k < 64; ++k) put(p.a, m, k, get(p.a, m, k) * 0x1p-127f);
  }
  for (const Dot& dot : kRightDots) {
    multiply(p, dot);
    EXPECT_LE(p.judge().worst, 1.0);
  }
  const auto flush = [](float x) { return std::fabs(x) < 0x1p-126f ? 0.0f : x; };
  multiply(p, [&](const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
    float sum = 0;
    for (std::int64_t k = 0; k < a.cols; ++k) sum = flush(sum + flush(flush(value_at(a, ab, m, k)) * value_at(b, bb, n, k)));
    return sum;
  });
  EXPECT_LE(p.judge().worst, 1.0);
}

TEST(RightKernel, may_flush_a_scaled_sum) {
  OwnedProblem p(filled(tags(kF32, 1, 1), 1.0f), filled(tags(kMxfp4, 1, 1), 1.0f), kF32);
  p.problem.epilogue.alpha = 0x1p-130f;
  put(p.d, 0, 0, 0.0f);
  EXPECT_TRUE(p.judge().ok);
  put(p.d, 0, 0, 0x1p-130f);
  EXPECT_EQ(p.judge().worst, 0.0);
}

// The bound is no empty promise: a plain FP32 sum uses a fair part of it.
TEST(Bound, is_not_silly_loose) {
  for (const std::int64_t k : {16, 64, 1024}) {
    const OwnedProblem p = random_problem(kBf16, kNvfp4, kF32, 71, k);
    multiply(p, sequential_dot);
    const CheckReport report = p.judge();
    EXPECT_GT(report.worst, 1e-4) << k;
    EXPECT_LT(report.worst, 1.0) << k;
    EXPECT_GT(report.factor, 0x1p-24 * static_cast<double>(k));
  }
}

TEST(Bound, planted_error_is_caught_beyond_it_and_accepted_within) {
  for (const Format& d : {kF32, kF16, kBf16}) {
    for (const Activation activation : kActivations) {
      OwnedProblem p = random_problem(kBf16, kNvfp4, d, 81, 512);
      p.problem.epilogue.activation = activation;
      multiply(p, double_dot);
      for (int n = 0; n < 12; ++n) {
        const ExactOutput exact = p.exact(2, n);
        if (exact.rounded == 0 || std::isnan(exact.rounded)) continue;
        for (const double off : {0.5, 1.5, -0.5, -1.5}) {
          // A stored value can only stand on d's grid: take the next one on the far side of the plant.
          const double wanted = exact.low + off * exact.bound;
          put(p.d, 2, n, static_cast<float>(wanted));
          const double planted = std::fabs(get(p.d, 2, n) - exact.low) / exact.bound;
          if ((planted > 1) != (std::fabs(off) > 1) || std::fabs(planted - 1) < 0.01) continue;
          const CheckReport report = p.judge();
          EXPECT_EQ(report.ok, std::fabs(off) < 1) << format_name(d) << ' ' << static_cast<int>(activation) << ' ' << planted;
          EXPECT_NEAR(report.worst, std::max(planted, report.ok ? report.worst : 0.0), 1e-6);
          EXPECT_TRUE(report.ok || report.col == n);
        }
        put(p.d, 2, n, static_cast<float>(exact.rounded));
      }
    }
  }
}

float bf16_sum(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) sum = BF16::decode(BF16::encode(sum + value_at(a, ab, m, k) * value_at(b, bb, n, k)));
  return sum;
}

float without_tail(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float sum = 0;
  for (std::int64_t k = 0; k < a.cols / 64 * 64; ++k) sum += value_at(a, ab, m, k) * value_at(b, bb, n, k);
  return sum;
}

float scale_of_next_row(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) {
    sum += value_at(a, ab, m, k) * element_at(b, bb, n, k) * block_scale_at(b, bb, (n + 1) % b.rows, k);
  }
  return sum;
}

float swapped_nibbles(const Matrix& a, std::int64_t ab, std::int64_t m, const Matrix& b, std::int64_t bb, std::int64_t n) {
  float sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) sum += value_at(a, ab, m, k) * element_at(b, bb, n, k ^ 1) * block_scale_at(b, bb, n, k);
  return sum;
}

TEST(WrongKernel, is_caught_even_in_bf16) {
  for (const Dot& wrong : {Dot(bf16_sum), Dot(without_tail), Dot(scale_of_next_row), Dot(swapped_nibbles)}) {
    const OwnedProblem p = random_problem(kBf16, kNvfp4, kBf16, 91, 1040);
    multiply(p, double_dot);
    ASSERT_TRUE(p.judge().ok);
    multiply(p, wrong);
    EXPECT_GT(p.judge().worst, 1.0);
  }
}

TEST(WrongKernel, missing_steps_of_the_epilogue_are_caught) {
  OwnedProblem p = random_problem(kBf16, kNvfp4, kF16, 95, 128);
  p.set_bias(random_operand(tags(kF32, 1, 12), 96));
  OwnedProblem without = random_problem(kBf16, kNvfp4, kF16, 95, 128);
  multiply(without, double_dot);
  EXPECT_GT(check(p.problem, without.d.view())->worst, 1.0);
}

// Scales near 2^-71: joined they are subnormal and lose bits, which alpha makes visible.
TEST(RightKernel, may_join_block_scales_below_fp32) {
  OwnedProblem p(random_operand(tags(kFp8E4m3Row128, 2, 64), 61), random_operand(tags(kFp8E4m3Row128, 3, 64), 62), kF32);
  for (int row = 0; row < 2; ++row) set_scale_code(with_strides(p.a.view()), 0, row, 0, float_bits(0x1.23456p-71f));
  for (int row = 0; row < 3; ++row) set_scale_code(with_strides(p.b.view()), 0, row, 0, float_bits(0x1.abcdep-72f));
  p.problem.epilogue.alpha = 0x1p100f;
  for (const Dot& dot : kRightDots) {
    multiply(p, dot);
    EXPECT_LE(p.judge().worst, 1.0);
  }
}

TEST(CorrectRounding, equals_a_long_double_sum_where_that_is_exact) {
  for (const Format& d : {kF32, kF16, kBf16}) {
    const OwnedProblem p = random_problem(kBf16, kNvfp4, d, 101, 24);
    const Matrix a = with_strides(p.problem.a), b = with_strides(p.problem.b);
    for (int m = 0; m < 5; ++m) {
      for (int n = 0; n < 12; ++n) {
        long double sum = 0;
        for (std::int64_t k = 0; k < 24; ++k) sum += static_cast<long double>(value_at(a, 0, m, k)) * value_at(b, 0, n, k);
        sum *= p.problem.b.global[0];
        const ExactOutput exact = p.exact(m, n);
        EXPECT_LE(exact.low, sum * (1 + 1e-18L) + 1e-18L);
        // One long double, one rounding; ties of 64-bit sums do not occur in random data.
        const float once = d == kF32 ? static_cast<float>(sum) : decode(d.element, encode(d.element, static_cast<float>(sum)));
        EXPECT_EQ(exact.rounded, once);
      }
    }
  }
}

TEST(Check, sample_reports_its_share_and_finds_a_wrong_last_column) {
  const OwnedProblem p(random_operand(tags(kBf16, 40, 64), 111), random_operand(tags(kNvfp4, 200, 64), 112), kBf16);
  multiply(p, double_dot);
  const CheckOptions few{.max_products = 1000 * 64, .seed = 3};
  const CheckReport report = p.judge({}, few);
  EXPECT_TRUE(report.ok);
  EXPECT_EQ(report.outputs, 8000);
  EXPECT_LE(report.checked, 1000);
  EXPECT_GT(report.checked, 500);
  for (int m = 0; m < 40; ++m) put(p.d, m, 199, 1e9f);
  EXPECT_FALSE(p.judge({}, few).ok);
}

TEST(Check, refuses_with_a_sentence) {
  const OwnedProblem p = random_problem(kBf16, kNvfp4, kF32, 121, 32);
  const auto sentence = [&](const GemmProblem& problem, const Matrix& observed, const CheckOptions& options = {}) {
    const auto report = check(problem, observed, {}, options);
    EXPECT_FALSE(report);
    EXPECT_EQ(report.status().code, Code::invalid_argument);
    return report.status().sentence;
  };
  Matrix observed = p.d.view();
  EXPECT_NE(sentence(p.problem, observed, {.max_products = 0}).find("max_products = 0"), std::string::npos);
  for (const Accumulation& nobodys : {Accumulation{.fraction_bits = 1}, Accumulation{.exact_run = 0}}) {
    EXPECT_EQ(check(p.problem, observed, nobodys).status().code, Code::invalid_argument);
    EXPECT_EQ(exact_output(p.problem, 0, 0, 0, nobodys).status().code, Code::invalid_argument);
  }
  observed.rows = 4;
  EXPECT_NE(sentence(p.problem, observed).find("shape of d"), std::string::npos);
  observed = p.d.view();
  observed.format = kBf16;
  EXPECT_NE(sentence(p.problem, observed).find("observed.format"), std::string::npos);
  observed = p.d.view();
  observed.data = nullptr;
  EXPECT_NE(sentence(p.problem, observed).find("observed.data"), std::string::npos);
  GemmProblem problem = p.problem;
  problem.b.scales = nullptr;
  EXPECT_NE(sentence(problem, p.d.view()).find("b.scales"), std::string::npos);
  EXPECT_FALSE(exact_output(p.problem, 0, 5, 0));
}

TEST(AccumulationModel, truncation_and_narrow_alignment_widen_the_bound) {
  const OwnedProblem p = random_problem(kFp8E4m3Row128, kFp8E4m3Block128, kF32, 131, 512);
  const double plain = exact_output(p.problem, 0, 0, 0, {})->bound;
  const double blackwell = exact_output(p.problem, 0, 0, 0, {.fraction_bits = 25, .exact_run = 1, .truncates = true})->bound;
  const double runs = exact_output(p.problem, 0, 0, 0, {.fraction_bits = 35, .exact_run = 16, .truncates = true})->bound;
  const double hopper = exact_output(p.problem, 0, 0, 0, {.fraction_bits = 13, .exact_run = 32, .truncates = true})->bound;
  EXPECT_GT(blackwell, 2 * plain);
  EXPECT_LT(runs, plain);
  EXPECT_GT(hopper, 2 * plain);
}

TEST(AccumulationModel, narrow_sums_are_promoted_every_128_columns) {
  const Accumulation hopper{.fraction_bits = 13, .exact_run = 32, .truncates = true};
  EXPECT_LT(accumulation_factor(hopper, 8192), 1.02 * accumulation_factor(hopper, 128));
  EXPECT_GT(accumulation_factor(hopper, 128), 3 * accumulation_factor(hopper, 32));
  EXPECT_EQ(accumulation_factor({}, 0), accumulation_factor({.exact_run = 16}, 0));
}

}  // namespace
}  // namespace finescale
