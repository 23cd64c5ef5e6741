// What independent implementations write for the same numbers, byte for byte.
#include "support/quantize_golden.h"

namespace finescale::test {
namespace {

TEST(QuantizeGolden, every_row_writes_the_bytes_of_the_other_implementations) { check_golden(cpu_device()); }

TEST(QuantizeGolden, every_profile_has_cases) {
  for (const NamedProfile& row : kProfiles) {
    int cases = 0;
    for (const GoldenCase& golden : golden_cases()) {
      if (golden.problem.recipe.profile != row.profile) continue;
      EXPECT_FALSE(refuse(reference_kernel<QuantizeProblem>(), golden.problem, cpu_device().info())) << golden.label;
      ++cases;
    }
    EXPECT_GT(cases, 5) << row.name;
  }
}

}  // namespace
}  // namespace finescale::test
