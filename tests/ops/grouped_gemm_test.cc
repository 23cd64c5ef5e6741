// Every grouped_gemm row of the CPU, judged by the oracle.
#include "support/grouped_gemm_sweep.h"

namespace finescale::test {
namespace {

TEST(GroupedGemm, every_row_is_within_its_bound_for_every_split_into_groups) {
  sweep_grouped_gemm(cpu_device(), grouped_size_cases(), false);
}
TEST(GroupedGemm, every_row_is_within_its_bound_for_every_format) { sweep_grouped_gemm(cpu_device(), grouped_format_cases()); }
TEST(GroupedGemm, every_row_is_within_its_bound_for_gathered_and_summed_rows) {
  sweep_grouped_gemm(cpu_device(), grouped_token_cases(), false);
}

TEST(GroupedGemm, rows_do_not_depend_on_the_grouping_where_the_caller_asks_for_it) {
  for (const auto& [a, b] : {std::pair{kBf16, kNvfp4}, {kNvfp4, kNvfp4}, {kFp8E4m3Row128, kFp8E4m3Block128}}) {
    for (const bool prepared : {false, true}) {
      expect_rows_do_not_depend_on_grouping({.a = a, .b = b, .d = kF32, .n = 21, .k = 130, .prepared = prepared}, cpu_device());
    }
  }
}

}  // namespace
}  // namespace finescale::test
