// Every CPU row of gemm against the oracle: within the bound of the accumulation that the row declares.
#include "cpu/gemm_case.h"

namespace finescale::test {
namespace {

void expect_within_bound(const GemmOperands& operands, const std::string& label) {
  int ran = 0;
  for (const auto* kernel : cpu_rows<GemmProblem>()) {
    OwnedMatrix d;
    const GemmProblem problem = operands.problem(d);
    if (refuse(*kernel, with_strides(problem), cpu_device().info())) continue;
    ++ran;
    const Status status = run_kernel(*kernel, problem, cpu_device());
    ASSERT_TRUE(status) << kernel->name << ": " << status.sentence;
    EXPECT_TRUE(d.guards_intact()) << kernel->name << ", " << label;
    const auto report = check(problem, d.view(), kernel->adds(problem));
    ASSERT_TRUE(report) << report.status().sentence;
    EXPECT_TRUE(report->ok) << kernel->name << ", " << label << ": worst " << report->worst << " at " << report->row << ", " << report->col
                            << ": " << report->observed << " for " << report->exact << " +- " << report->bound;
  }
  EXPECT_GE(ran, 1) << label;
}

void expect_within_bound(const GemmCase& c) { expect_within_bound(GemmOperands(c), c.label()); }

constexpr Format kBlockFormats[] = {kNvfp4, kMxfp4, kMxfp8E4m3, kMxfp8E5m2, kFp8E4m3Row128, kFp8E4m3Block128, kFp8E4m3Tensor, kFp4Tensor};

TEST(CpuGemm, is_within_the_bound_for_every_format_of_b) {
  for (const Format& b : kBlockFormats) {
    for (const bool prepared : {true, false}) {
      for (const std::int64_t m : {1, 2, 3, 5, 7, 13}) {
        expect_within_bound({.b = b, .m = m, .n = 37, .k = 341, .prepared = prepared, .values = m % 2 == 0 ? Values::wide : Values::usual});
      }
    }
  }
}

TEST(CpuGemm, is_within_the_bound_for_every_format_of_a) {
  for (const Format& a :
       {kF32, kF16, kBf16, kNvfp4, kMxfp4, kMxfp8E4m3, kMxfp8E5m2, kFp8E4m3Row128, kFp8E4m3Block128, kFp8E4m3Tensor, kFp4Tensor}) {
    for (const std::int64_t m : {1, 4, 131}) expect_within_bound({.a = a, .m = m, .n = 19, .k = 130});
  }
}

TEST(CpuGemm, is_within_the_bound_for_every_format_of_d) {
  for (const Format& d :
       {kF32, kF16, kBf16, kNvfp4, kMxfp4, kMxfp8E4m3, kMxfp8E5m2, kFp8E4m3Row128, kFp8E4m3Block128, kFp8E4m3Tensor, kFp4Tensor}) {
    for (const std::int64_t m : {1, 3, 150}) expect_within_bound({.d = d, .batch = 2, .m = m, .n = 133, .k = 64, .residual = true});
  }
}

TEST(CpuGemm, is_within_the_bound_for_every_shape) {
  for (const std::int64_t m : {0, 1, 6, 191, 193}) {
    for (const std::int64_t n : {0, 1, 15, 16, 17, 128, 131}) {
      for (const std::int64_t k : {0, 1, 15, 16, 17, 255, 256, 257}) expect_within_bound({.m = m, .n = n, .k = k});
    }
  }
}

TEST(CpuGemm, is_within_the_bound_for_every_gate_and_activation) {
  for (const Gate gate : {Gate::halves_gate_first, Gate::halves_up_first, Gate::alternating_rows, Gate::second_matrix}) {
    for (const Activation act :
         {Activation::none, Activation::silu, Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::relu2}) {
      for (const std::int64_t m : {1, 9}) {
        expect_within_bound(
            {.d = kBf16, .batch = 2, .m = m, .n = 21, .k = 96, .gate = gate, .activation = act, .bias = true, .residual = true});
        expect_within_bound({.m = m, .n = 21, .k = 96, .activation = act, .bias = true, .residual = true});
      }
    }
  }
}

TEST(CpuGemm, reads_every_layout_of_b_in_place) {
  for (const CodeLayout codes : {CodeLayout::row_major, CodeLayout::high_nibble_first}) {
    for (const ScaleLayout scales : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
      for (const bool prepared : {false, true}) {
        expect_within_bound({.batch = 2, .m = 7, .n = 150, .k = 200, .prepared = prepared, .b_codes = codes, .b_scales = scales});
      }
    }
  }
}

// One row of A has a leaf of its own, which tells plain block scales from zero, subnormal and the largest ones.
TEST(CpuGemm, is_within_the_bound_for_one_row_and_every_block_scale) {
  for (const std::int64_t k : {16, 64, 341, 1024}) expect_within_bound({.m = 1, .n = 150, .k = k, .values = Values::wide});
}

TEST(CpuGemm, multiplies_one_row_by_negative_and_nan_block_scales) {
  GemmOperands operands({.m = 1, .n = 16, .k = 256});
  operands.set_scale_of_b(3, 32, 0x7F);  // a unit of 64 columns each: none hides another
  operands.set_scale_of_b(12, 64, 0xFF);
  operands.set_scale_of_b(6, 176, 0xB8);
  operands.set_scale_of_b(9, 240, 0x80);
  expect_within_bound(operands, "-1 and NaN scales");
}

// The gemv leaf scales the weights first where a sum of x and unscaled elements could leave the normal range: the outer factors
// ask for that, the inner ones almost.
TEST(CpuGemm, is_within_the_bound_for_activations_at_the_ends_of_the_range) {
  for (const float factor : {0x1p-120f, 0x1p-38f, 0x1p33f, 0x1p117f}) {
    for (const Format& b : {kNvfp4, kMxfp4, kFp4Tensor}) {
      for (const std::int64_t m : {1, 2, 3, 4}) {
        GemmOperands operands({.a = kF32, .b = b, .m = m, .n = 37, .k = 61});
        operands.scale_a(factor);
        expect_within_bound(operands, "activations times " + std::to_string(factor));
      }
    }
  }
}

TEST(CpuGemm, is_within_the_bound_for_real_shapes) {
  for (const std::int64_t m : {1, 4, 8, 64}) expect_within_bound({.d = kBf16, .m = m, .n = 384, .k = 1536});
}

}  // namespace
}  // namespace finescale::test
