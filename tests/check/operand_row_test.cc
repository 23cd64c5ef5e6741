#include "check/operand_row.h"

#include "check/problems.h"

#include <cmath>
#include <limits>

namespace finescale {
namespace {

OperandRow row_of(const OwnedMatrix& matrix, std::int64_t row) { return decode_row(with_strides(Matrix(matrix.view())), 0, row, row); }

// Bell-shaped bf16 against nvfp4: every product is a multiple of 2^-60, and sums stay below 2^60.
TEST(ExactDot, agrees_with_128_bit_integers) {
  for (const std::int64_t k : {0, 1, 15, 16, 17, 33, 200}) {
    const OwnedMatrix a = random_operand(tags(kBf16, 3, k), 5), b = random_operand(tags(kNvfp4, 2, k), 6);
    for (std::int64_t m = 0; m < 3; ++m) {
      for (std::int64_t n = 0; n < 2; ++n) {
        const OperandRow x = row_of(a, m), y = row_of(b, n);
        Int128 sum = 0;
        double magnitude = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          const double product = x.value[i] * y.value[i];
          sum += static_cast<Int128>(std::ldexp(product, 60));
          magnitude += std::fabs(product);
        }
        FixedPoint expected;
        if (sum > 0) expected.add(static_cast<Uint128>(sum), -60);
        FixedPoint negative;
        if (sum < 0) negative.add(static_cast<Uint128>(-sum), -60);
        const ExactDot dot = exact_dot(x, y);
        EXPECT_TRUE(dot.sum == (expected -= negative)) << "K = " << k;
        EXPECT_GE(dot.magnitude, magnitude * (1 - 1e-14));
        EXPECT_LE(dot.magnitude, magnitude * (1 + 1e-12));
      }
    }
  }
}

// Term by term through FixedPoint, with nothing of the chunked way: every pair of formats, wide exponents.
TEST(ExactDot, chunks_equal_single_products_for_every_pair) {
  for (const NamedFormat& left : kFormats) {
    for (const NamedFormat& right : kFormats) {
      const auto values = [](const Format& format) { return format == kF16 ? Values::usual : Values::wide; };  // finite ones
      const OwnedMatrix a = random_operand(tags(left.format, 1, 150), 7, values(left.format));
      const OwnedMatrix b = random_operand(tags(right.format, 1, 150), 8, values(right.format));
      const OperandRow x = row_of(a, 0), y = row_of(b, 0);
      FixedPoint expected;
      for (std::size_t i = 0; i < 150; ++i) {
        FixedPoint product;
        product += x.value[i];
        product *= element_at(with_strides(Matrix(b.view())), 0, 0, static_cast<std::int64_t>(i));
        product *= block_scale_at(with_strides(Matrix(b.view())), 0, 0, static_cast<std::int64_t>(i));
        expected += product;
      }
      EXPECT_TRUE(exact_dot(x, y).sum == expected) << left.name << " x " << right.name;
    }
  }
}

TEST(ExactDot, survives_cancellation_over_all_of_f32) {
  const OwnedMatrix a = filled(tags(kF32, 1, 48), 0.0f), b = filled(tags(kFp8E4m3Row128, 1, 48), 1.0f);
  put(a, 0, 0, 0x1.fffffep127f);
  put(a, 0, 17, -0x1.fffffep127f);
  put(a, 0, 1, 0x1p-149f);
  put(a, 0, 40, 0x1p-149f);
  FixedPoint expected;
  expected.add(1, -148);
  EXPECT_TRUE(exact_dot(row_of(a, 0), row_of(b, 0)).sum == expected);
}

TEST(ExactDot, block_scales_at_both_ends_stay_exact) {
  OwnedMatrix a = filled(tags(kMxfp8E5m2, 1, 32), 0x1p-16f), b = filled(tags(kFp8E4m3Row128, 1, 32), 0x1p-9f);
  set_scale_code(with_strides(a.view()), 0, 0, 0, 0);  // 2^-127
  set_scale_code(with_strides(b.view()), 0, 0, 0, 1);  // 2^-149
  FixedPoint expected;
  expected.add(32, -16 - 127 - 9 - 149);
  EXPECT_TRUE(exact_dot(row_of(a, 0), row_of(b, 0)).sum == expected);
}

TEST(ExactDot, classes_of_not_finite_sums) {
  const float inf = std::numeric_limits<float>::infinity();
  const OwnedMatrix b = filled(tags(kMxfp4, 1, 32), 1.0f);
  OwnedMatrix a = filled(tags(kF32, 1, 32), 1.0f);
  put(a, 0, 3, inf);
  EXPECT_EQ(exact_dot(row_of(a, 0), row_of(b, 0)).special, inf);
  put(a, 0, 20, -inf);
  EXPECT_TRUE(std::isnan(exact_dot(row_of(a, 0), row_of(b, 0)).special));
  put(a, 0, 20, 1.0f);
  put(b, 0, 3, 0.0f);
  EXPECT_TRUE(std::isnan(exact_dot(row_of(a, 0), row_of(b, 0)).special));  // Inf * 0
  put(a, 0, 3, 1.0f);
  EXPECT_TRUE(exact_dot(row_of(a, 0), row_of(b, 0)).finite);
  set_scale_code(with_strides(b.view()), 0, 0, 0, 0xFF);
  EXPECT_TRUE(std::isnan(exact_dot(row_of(a, 0), row_of(b, 0)).special));
}

TEST(ExactDot, says_when_fp32_may_lose_small_products) {
  const OwnedMatrix b = filled(tags(kMxfp4, 1, 32), 1.0f);
  EXPECT_EQ(exact_dot(row_of(filled(tags(kF32, 1, 32), 0x1p-70f), 0), row_of(b, 0)).underflow, 0);
  EXPECT_GT(exact_dot(row_of(filled(tags(kF32, 1, 32), 0x1p-80f), 0), row_of(b, 0)).underflow, 0);
}

}  // namespace
}  // namespace finescale
