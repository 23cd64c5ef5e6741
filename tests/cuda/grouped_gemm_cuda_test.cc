// Every grouped_gemm row of a GPU, judged by the oracle; two runs have the same bits.
#include "cuda/cuda_test.h"
#include "support/grouped_gemm_sweep.h"

namespace finescale::test {
namespace {

class GroupedGemmOnGpu : public CudaTest {};

TEST_F(GroupedGemmOnGpu, every_row_is_within_its_bound_for_every_split_into_groups) {
  sweep_grouped_gemm(gpu(), sampled(grouped_size_cases()));
}
TEST_F(GroupedGemmOnGpu, every_row_is_within_its_bound_for_every_format) { sweep_grouped_gemm(gpu(), sampled(grouped_format_cases())); }
TEST_F(GroupedGemmOnGpu, every_row_is_within_its_bound_for_gathered_and_summed_rows) {
  sweep_grouped_gemm(gpu(), sampled(grouped_token_cases()));
}

// The generic kernels' summation order does not depend on the tile: a group's rows have the bits that gemm gives them.
TEST_F(GroupedGemmOnGpu, a_single_group_has_the_bits_of_a_plain_product) {
  const GemmCase plain{.a = kNvfp4, .b = kNvfp4, .d = kF32, .m = 37, .n = 41, .k = 200};
  const GroupedCase grouped{.gemm = plain, .kind = Routing::Kind::end_offsets, .sizes = {37}};
  const auto* gemm_row = find_kernel(kernel_tables<GemmProblem>(), "gemm_any_any_any_generic");
  const auto* grouped_row = find_kernel(kernel_tables<GroupedGemmProblem>(), "grouped_gemm_any_any_any_generic");
  ASSERT_TRUE(gemm_row != nullptr && grouped_row != nullptr);
  const auto expected = run_case(plain, *gemm_row, gpu());
  const auto actual = run_case(grouped, *grouped_row, gpu());
  ASSERT_TRUE(expected) << expected.status().sentence;
  ASSERT_TRUE(actual) << actual.status().sentence;
  EXPECT_TRUE(same_bytes("data", expected->data(), actual->data()));
}

}  // namespace
}  // namespace finescale::test
