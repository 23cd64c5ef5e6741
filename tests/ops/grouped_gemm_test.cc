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

}  // namespace
}  // namespace finescale::test
