// NaN and Inf: A and B are always read, and every step is IEEE's.
#include "check/problems.h"

#include <cmath>
#include <limits>

namespace finescale {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNotANumber = std::numeric_limits<float>::quiet_NaN();

struct Step {
  const char* name;
  float a, b, scale, alpha, bias;
  float expected;
};

OwnedProblem one_by_one(const Step& step, const Format& out) {
  OwnedProblem p(filled(tags(kF32, 1, 2), step.a), filled(tags(kFp8E4m3Row128, 1, 2), step.b, step.scale), out);
  put(p.a, 0, 1, 0.0f);
  p.problem.epilogue.alpha = step.alpha;
  p.set_bias(filled(tags(kF32, 1, 1), step.bias));
  return p;
}

bool accepts(const OwnedProblem& p, float observed) {
  put(p.d, 0, 0, observed);
  return p.judge().ok;
}

TEST(NotFinite, follows_ieee) {
  constexpr Step kSteps[] = {
      {"NaN in A", kNotANumber, 1, 1, 1, 0, kNotANumber},
      {"NaN in A times 0", kNotANumber, 0, 1, 1, 0, kNotANumber},
      {"NaN in B", 0, kNotANumber, 1, 1, 0, kNotANumber},
      {"NaN scale", 1, 1, kNotANumber, 1, 0, kNotANumber},
      {"NaN scale over 0", 1, 0, kNotANumber, 1, 0, kNotANumber},
      {"Inf in A", kInf, 1, 1, 1, 0, kInf},
      {"Inf times 0", kInf, 0, 1, 1, 0, kNotANumber},
      {"-Inf", kInf, -1, 1, 1, 0, -kInf},
      {"alpha 0 times Inf", kInf, 1, 1, 0, 0, kNotANumber},
      {"alpha 0 times NaN", kNotANumber, 1, 1, 0, 0, kNotANumber},
      {"alpha 0", 1, 1, 1, 0, 5, 5},
      {"Inf - Inf", kInf, 1, 1, 1, -kInf, kNotANumber},
      {"bias Inf", 1, 1, 1, 1, kInf, kInf},
      {"alpha NaN", 1, 1, 1, kNotANumber, 0, kNotANumber},
      {"alpha Inf", 1, 1, 1, kInf, 0, kInf},
      {"alpha Inf times 0", 0, 1, 1, kInf, 0, kNotANumber},
  };
  for (const Step& step : kSteps) {
    const OwnedProblem p = one_by_one(step, kF32);
    const double exact = p.exact(0, 0).low;
    EXPECT_TRUE(std::isnan(step.expected) ? std::isnan(exact) : exact == step.expected) << step.name << ": " << exact;
    for (const float observed : {kNotANumber, kInf, -kInf, 5.0f, 0.0f}) {
      const bool same = std::isnan(step.expected) ? std::isnan(observed) : observed == step.expected;
      EXPECT_EQ(accepts(p, observed), same) << step.name << ", observed " << observed;
    }
  }
}

TEST(NotFinite, nan_scale_byte_of_nvfp4_shows_in_its_rows_only) {
  const OwnedProblem p(filled(tags(kBf16, 1, 32), 0.0f), filled(tags(kNvfp4, 2, 32), 1.0f), kBf16);
  set_scale_code(with_strides(p.b.view()), 0, 1, 16, 0x7F);
  put(p.d, 0, 0, 0.0f);
  put(p.d, 0, 1, 0.0f);
  const CheckReport report = p.judge();
  EXPECT_EQ(report.worst, kInf);
  EXPECT_EQ(report.col, 1);
  put(p.d, 0, 1, kNotANumber);
  EXPECT_TRUE(p.judge().ok);
}

TEST(NotFinite, residual_and_its_factor) {
  OwnedProblem p(filled(tags(kF32, 1, 1), 1.0f), filled(tags(kMxfp4, 1, 1), 1.0f), kF32);
  p.set_residual(filled(tags(kF32, 1, 1), kInf), -1.0f);
  EXPECT_TRUE(accepts(p, -kInf));
  EXPECT_FALSE(accepts(p, kInf));
  p.set_residual(filled(tags(kF32, 1, 1), 0.0f), kInf);
  EXPECT_TRUE(accepts(p, kNotANumber));
  EXPECT_FALSE(accepts(p, 1.0f));
}

TEST(NotFinite, f16_overflows_from_65520_on) {
  OwnedProblem p(filled(tags(kF32, 1, 1), 65519.0f), filled(tags(kMxfp4, 1, 1), 1.0f), kF16);
  EXPECT_TRUE(accepts(p, 65504.0f));
  EXPECT_FALSE(accepts(p, kInf));
  put(p.a, 0, 0, 65520.0f);  // the tie: either, since FP32 may be an ulp lower
  EXPECT_TRUE(accepts(p, kInf));
  put(p.a, 0, 0, 65530.0f);
  EXPECT_TRUE(accepts(p, kInf));
  EXPECT_FALSE(accepts(p, 65504.0f));
  put(p.a, 0, 0, -1e9f);
  EXPECT_TRUE(accepts(p, -kInf));
  EXPECT_FALSE(accepts(p, kInf));
  EXPECT_FALSE(accepts(p, -65504.0f));
}

TEST(NotFinite, activations) {
  for (const Activation activation : {Activation::relu, Activation::relu2, Activation::silu, Activation::gelu_tanh, Activation::gelu_erf}) {
    OwnedProblem p(filled(tags(kF32, 1, 1), kNotANumber), filled(tags(kMxfp4, 1, 1), 1.0f), kF32);
    p.problem.epilogue.activation = activation;
    EXPECT_TRUE(accepts(p, kNotANumber));
    EXPECT_FALSE(accepts(p, 0.0f));
    put(p.a, 0, 0, kInf);
    EXPECT_TRUE(accepts(p, kInf));
    EXPECT_FALSE(accepts(p, kNotANumber));
    put(p.a, 0, 0, -kInf);
    EXPECT_TRUE(accepts(p, 0.0f));
    EXPECT_FALSE(accepts(p, -1.0f));
  }
}

TEST(NotFinite, overflow_on_the_way_is_the_kernels_business_only_where_the_sum_itself_leaves_fp32) {
  OwnedProblem p(filled(tags(kF32, 1, 2), 0x1p127f), filled(tags(kMxfp4, 1, 2), 2.0f), kF32);
  put(p.a, 0, 1, -0x1p127f);
  EXPECT_TRUE(accepts(p, 0.0f));
  EXPECT_TRUE(accepts(p, kNotANumber));  // Inf - Inf
  // The factors may not overflow, whatever their order: 2^60 * 2^100 * 2^-100.
  OwnedProblem q(filled(tags(kF32, 1, 1), 0x1p60f), filled(tags(kNvfp4, 1, 1), 1.0f, 1.0f, 0x1p-100f), kF32);
  q.problem.epilogue.alpha = 0x1p100f;
  EXPECT_TRUE(accepts(q, 0x1p60f));
  EXPECT_FALSE(accepts(q, kInf));
}

// p - q cancels to less than its rounding error: as the factor of an Inf it may be zero or not.
TEST(NotFinite, an_inf_times_what_may_be_zero_is_inf_or_nan) {
  Matrix both = tags(kMxfp4, 2, 3);
  OwnedProblem p(filled(tags(kF32, 1, 3), 0x1.000002p0f), filled(both, 0.0f), kF32, Gate::halves_gate_first);
  put(p.b, 0, 0, 1.0f);
  put(p.b, 0, 1, -1.0f);
  put(p.b, 1, 2, 1.0f);
  put(p.a, 0, 0, 0x1.000004p0f);
  p.set_bias(filled(tags(kF32, 1, 2), 0.0f));
  put(p.bias, 0, 1, kInf);
  EXPECT_TRUE(accepts(p, kInf));
  EXPECT_TRUE(accepts(p, kNotANumber));
  EXPECT_FALSE(accepts(p, 1.0f));
  put(p.a, 0, 0, 2.0f);
  EXPECT_TRUE(accepts(p, kInf));
  EXPECT_FALSE(accepts(p, kNotANumber));

  OwnedProblem q(filled(tags(kF32, 1, 2), 0x1.000002p0f), filled(tags(kMxfp4, 1, 2), 1.0f), kF32);
  put(q.b, 0, 1, -1.0f);
  put(q.a, 0, 0, 0x1.000004p0f);
  q.problem.epilogue.alpha = kInf;
  EXPECT_TRUE(accepts(q, kInf));
  EXPECT_TRUE(accepts(q, kNotANumber));
  put(q.a, 0, 0, 2.0f);
  EXPECT_FALSE(accepts(q, kNotANumber));
}

TEST(NotFinite, an_activation_may_overflow_before_it_is_scaled_down) {
  OwnedProblem p(filled(tags(kF32, 1, 2), 0.0f), filled(tags(kMxfp4, 2, 2), 1.0f), kF32, Gate::alternating_rows);
  put(p.a, 0, 0, 0x1p100f);
  put(p.b, 1, 0, 0.0f);
  put(p.a, 0, 1, 0x1p-100f);
  p.problem.epilogue.activation = Activation::relu2;
  EXPECT_TRUE(accepts(p, 0x1p100f));
  EXPECT_TRUE(accepts(p, kInf));
  p.problem.epilogue.activation = Activation::relu;
  EXPECT_TRUE(accepts(p, 1.0f));
  EXPECT_FALSE(accepts(p, kInf));
}

TEST(NotFinite, sign_of_zero_is_not_judged) {
  const OwnedProblem p(filled(tags(kF32, 1, 1), 0.0f), filled(tags(kMxfp4, 1, 1), 1.0f), kF32);
  EXPECT_TRUE(accepts(p, 0.0f));
  EXPECT_TRUE(accepts(p, -0.0f));
  EXPECT_EQ(p.judge().worst, 0.0);
}

}  // namespace
}  // namespace finescale
