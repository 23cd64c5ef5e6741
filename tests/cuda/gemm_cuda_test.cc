// Every gemm row of a GPU, judged by the oracle; two runs have the same bits.
#include "cuda/cuda_test.h"
#include "support/gemm_sweep.h"

namespace finescale::test {
namespace {

class GemmOnGpu : public CudaTest {};

TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_every_pair_of_formats) { sweep_gemm(gpu(), sampled(gemm_format_cases())); }
TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_every_shape) { sweep_gemm(gpu(), sampled(gemm_shape_cases())); }
TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_every_layout) { sweep_gemm(gpu(), sampled(gemm_layout_cases())); }
TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_every_epilogue) { sweep_gemm(gpu(), sampled(gemm_epilogue_cases())); }
TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_every_block_output) { sweep_gemm(gpu(), sampled(gemm_output_cases())); }

TEST_F(GemmOnGpu, every_row_is_within_its_bound_for_a_model_sized_product) {
  sweep_gemm(gpu(), {{.a = kBf16, .b = kNvfp4, .d = kBf16, .m = 3, .n = 2880, .k = 2880},
                     {.a = kNvfp4, .b = kNvfp4, .d = kBf16, .m = 17, .n = 70, .k = 7168}});
}

TEST_F(GemmOnGpu, rows_do_not_depend_on_m_where_the_caller_asks_for_it) {
  for (const auto& [a, b] : {std::pair{kBf16, kNvfp4}, {kNvfp4, kNvfp4}, {kF32, kMxfp4}, {kFp8E4m3Row128, kFp8E4m3Block128}}) {
    expect_rows_do_not_depend_on_m({.a = a, .b = b, .d = kF32, .n = 21, .k = 130}, gpu());
  }
}

// 2^-100 * 1.0 * 2^-40: a kernel that flushed subnormals would give 0.
TEST_F(GemmOnGpu, subnormal_results_are_kept) {
  auto a = OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 1});
  auto b = OwnedMatrix::make({.format = kMxfp4, .rows = 1, .cols = 1});
  auto d = OwnedMatrix::make({.format = kF32, .rows = 1, .cols = 1});
  ASSERT_TRUE(a && b && d);
  set_code(with_strides(a->view()), 0, 0, 0, float_bits(0x1p-100f));
  set_code(with_strides(b->view()), 0, 0, 0, 2);
  set_scale_code(with_strides(b->view()), 0, 0, 0, 127 - 40);
  const auto placed_a = PlacedMatrix::place(gpu(), *std::move(a));
  const auto placed_b = PlacedMatrix::place(gpu(), *std::move(b));
  const auto placed_d = PlacedMatrix::place(gpu(), *std::move(d));
  ASSERT_TRUE(placed_a && placed_b && placed_d);
  const Status status = gemm({.a = placed_a->view(), .b = placed_b->view(), .d = placed_d->view()}, {.device = &gpu()});
  ASSERT_TRUE(status) << status.sentence;
  ASSERT_TRUE(placed_d->fetch(gpu()));
  EXPECT_EQ(element_at(with_strides(Matrix(placed_d->host().view())), 0, 0, 0), 0x1p-140f);
}

}  // namespace
}  // namespace finescale::test
