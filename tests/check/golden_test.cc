// Products whose exact value is known by hand.
#include "check/problems.h"

#include <cmath>

namespace finescale {
namespace {

// 32 ones times 6 * 448, times a global of 2^-10: the sum is beyond f16, the output is not.
TEST(Golden, global_applies_before_the_output_rounding) {
  const OwnedProblem p(filled(tags(kF16, 1, 32), 1.0f), filled(tags(kNvfp4, 1, 32), 6.0f, 448.0f, 0x1p-10f), kF16);
  EXPECT_EQ(p.exact(0, 0).rounded, 84.0);
  put(p.d, 0, 0, 84.0f);
  EXPECT_TRUE(p.judge().ok);
  put(p.d, 0, 0, INFINITY);
  EXPECT_EQ(p.judge().worst, INFINITY);
}

TEST(Golden, gate_and_up_have_their_own_globals) {
  OwnedProblem p(filled(tags(kBf16, 1, 16), 6.0f), filled(tags(kNvfp4, 1, 16), 1.0f, 1.0f, 1.0f / 16), kF32, Gate::second_matrix);
  p.b2 = filled(tags(kNvfp4, 1, 16), 1.0f, 1.0f, 0.25f);
  p.problem.b2 = p.b2.view();
  p.problem.epilogue.activation = Activation::silu;
  EXPECT_LT(p.exact(0, 0).low, 143.64394226544460);
  EXPECT_GT(p.exact(0, 0).high, 143.64394226544458);
  put(p.d, 0, 0, 143.643942f);
  EXPECT_TRUE(p.judge().ok);
  put(p.d, 0, 0, 35.91f);
  EXPECT_FALSE(p.judge().ok);
}

TEST(Golden, order_of_gate_and_up) {
  Matrix both = tags(kNvfp4, 2, 16);
  both.global_kind = GlobalScale::none;
  for (const Gate gate : {Gate::halves_gate_first, Gate::halves_up_first, Gate::alternating_rows}) {
    OwnedProblem p(filled(tags(kBf16, 1, 16), 6.0f), filled(both, 1.0f, 1.0f / 64), kF32, gate);
    set_scale_code(with_strides(p.b.view()), 0, gate == Gate::halves_up_first ? 0 : 1, 0, E4M3::encode(1.0f / 32));
    p.problem.epilogue.activation = Activation::silu;
    EXPECT_NEAR(p.exact(0, 0).low, 3.6790851428713965, 1e-11);
    put(p.d, 0, 0, 3.679085f);
    EXPECT_TRUE(p.judge().ok);
    put(p.d, 0, 0, 4.286584f);
    EXPECT_FALSE(p.judge().ok);
  }
}

TEST(Golden, beta_of_zero_never_reads_the_residual) {
  OwnedProblem p(filled(tags(kF32, 1, 32), 1.0f), filled(tags(kMxfp4, 1, 32), 1.0f), kF32);
  p.problem.epilogue.alpha = 0.5f;
  p.set_residual(filled(tags(kF32, 1, 1), NAN), 0.0f);
  EXPECT_EQ(p.exact(0, 0).rounded, 16.0);
  put(p.d, 0, 0, 16.0f);
  EXPECT_EQ(p.judge().worst, 0.0);
  p.problem.epilogue.residual.data = nullptr;
  EXPECT_EQ(p.judge().worst, 0.0);
  p.set_residual(filled(tags(kF32, 1, 1), 2.0f), 1.0f);
  EXPECT_EQ(p.exact(0, 0).rounded, 18.0);
  put(p.d, 0, 0, 16.0f);
  EXPECT_FALSE(p.judge().ok);
}

TEST(Golden, bias_of_an_odd_width) {
  OwnedProblem p(filled(tags(kBf16, 2, 32), 1.0f), filled(tags(kMxfp4, 39, 32), 1.0f), kBf16);
  p.set_bias(filled(tags(kF32, 1, 39), 0.0f));
  for (int n = 0; n < 39; ++n) {
    put(p.bias, 0, n, static_cast<float>(n));
    for (int m = 0; m < 2; ++m) put(p.d, m, n, static_cast<float>(32 + n));
  }
  EXPECT_EQ(p.judge().worst, 0.0);
  EXPECT_EQ(p.exact(1, 38).rounded, 70.0);
}

TEST(Golden, globals_of_every_batch) {
  Matrix b = tags(kNvfp4, 1, 16, 2);
  b.global_kind = GlobalScale::per_batch;
  OwnedProblem p(filled(tags(kBf16, 1, 16, 2), 1.0f), filled(b, 1.0f), kF32);
  p.b.view().global[0] = 0.5f;
  p.b.view().global[1] = 3.0f;
  EXPECT_EQ(p.exact(0, 0, 0).rounded, 8.0);
  EXPECT_EQ(p.exact(0, 0, 1).rounded, 48.0);
}

// Two parts of 1025 and -1024: a part stored in bf16 loses the difference.
TEST(Golden, partial_sums_that_cancel) {
  const OwnedProblem p(filled(tags(kF32, 1, 256), 0.0f), filled(tags(kMxfp4, 1, 256), 1.0f), kBf16);
  put(p.a, 0, 0, 1025.0f);
  put(p.a, 0, 128, -1024.0f);
  EXPECT_EQ(p.exact(0, 0).rounded, 1.0);
  put(p.d, 0, 0, 1.0f);
  EXPECT_EQ(p.judge().worst, 0.0);
  put(p.d, 0, 0, 0.0f);
  EXPECT_GT(p.judge().worst, 1.0);
}

TEST(Golden, no_columns_leave_the_epilogue_of_zero) {
  OwnedProblem p(filled(tags(kBf16, 1, 0), 0.0f), filled(tags(kNvfp4, 2, 0), 0.0f), kF32);
  p.set_bias(filled(tags(kF32, 1, 2), 3.0f));
  p.problem.epilogue.activation = Activation::relu2;
  put(p.d, 0, 0, 9.0f);
  put(p.d, 0, 1, 9.0f);
  EXPECT_EQ(p.judge().worst, 0.0);
  EXPECT_EQ(p.judge().checked, 2);
}

TEST(Golden, no_outputs_are_right) {
  const OwnedProblem p(filled(tags(kBf16, 0, 16), 1.0f), filled(tags(kNvfp4, 3, 16), 1.0f), kF32);
  const CheckReport report = p.judge();
  EXPECT_TRUE(report.ok);
  EXPECT_EQ(report.outputs, 0);
}

// Halfway between two bf16 numbers but for one product 2^80 times smaller: doubles would not see it.
TEST(Golden, rounds_once_from_the_exact_sum) {
  const OwnedProblem p(filled(tags(kF32, 1, 3), 0.0f), filled(tags(kMxfp4, 1, 3), 1.0f), kBf16);
  put(p.a, 0, 0, 1.0f);
  put(p.a, 0, 1, 0x1p-8f);
  EXPECT_EQ(p.exact(0, 0).rounded, 1.0);
  put(p.a, 0, 2, 0x1p-80f);
  EXPECT_EQ(p.exact(0, 0).rounded, 1.0078125);
  EXPECT_LE(p.exact(0, 0).low, 1.00390625);
  EXPECT_GT(p.exact(0, 0).high, 1.00390625);
}

}  // namespace
}  // namespace finescale
