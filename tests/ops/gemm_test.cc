// Every gemm row of the CPU, judged by the oracle.
#include "support/gemm_sweep.h"

namespace finescale::test {
namespace {

TEST(Gemm, every_row_is_within_its_bound_for_every_pair_of_formats) { sweep_gemm(cpu_device(), gemm_format_cases()); }
TEST(Gemm, every_row_is_within_its_bound_for_every_shape) { sweep_gemm(cpu_device(), gemm_shape_cases(), false); }
TEST(Gemm, every_row_is_within_its_bound_for_every_layout) { sweep_gemm(cpu_device(), gemm_layout_cases(), false); }
TEST(Gemm, every_row_is_within_its_bound_for_every_epilogue) { sweep_gemm(cpu_device(), gemm_epilogue_cases(), false); }
TEST(Gemm, every_row_is_within_its_bound_for_every_block_output) { sweep_gemm(cpu_device(), gemm_output_cases(), false); }

TEST(Gemm, rows_do_not_depend_on_m_where_the_caller_asks_for_it) {
  for (const auto& [a, b] : {std::pair{kBf16, kNvfp4}, {kNvfp4, kNvfp4}, {kF32, kMxfp4}, {kFp8E4m3Row128, kFp8E4m3Block128}}) {
    for (const bool prepared : {false, true}) {
      expect_rows_do_not_depend_on_m({.a = a, .b = b, .d = kF32, .n = 21, .k = 130, .prepared = prepared}, cpu_device());
    }
  }
}

}  // namespace
}  // namespace finescale::test
