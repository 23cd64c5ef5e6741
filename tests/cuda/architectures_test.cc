// Which GPUs a build runs on: plain arithmetic, no GPU needed.
#include "backends/cuda/host/architectures.h"

#include "finescale_built.h"

#include <gtest/gtest.h>

namespace finescale::cuda {
namespace {

constexpr std::int32_t kCapabilities[] = {75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121, 130};

std::vector<std::int32_t> runs_on(std::string_view architecture) {
  std::vector<std::int32_t> found;
  for (const std::int32_t capability : kCapabilities) {
    if (architecture_runs_on(architecture, capability)) found.push_back(capability);
  }
  return found;
}

using Capabilities = std::vector<std::int32_t>;

TEST(Architectures, plain_code_runs_on_its_major_version_from_its_minor_on) {
  EXPECT_EQ(runs_on("80"), (Capabilities{80, 86, 87, 89}));
  EXPECT_EQ(runs_on("89"), (Capabilities{89}));
}

TEST(Architectures, architecture_specific_code_runs_on_that_capability_only) {
  EXPECT_EQ(runs_on("90a"), (Capabilities{90}));
  EXPECT_EQ(runs_on("100a"), (Capabilities{100}));
}

TEST(Architectures, family_code_runs_on_its_family) {
  EXPECT_EQ(runs_on("100f"), (Capabilities{100, 101, 103}));
  EXPECT_EQ(runs_on("110f"), (Capabilities{110}));
  EXPECT_EQ(runs_on("120f"), (Capabilities{120, 121}));
}

TEST(Architectures, what_is_no_architecture_runs_nowhere) {
  EXPECT_EQ(runs_on(""), Capabilities{});
  EXPECT_EQ(runs_on("a"), Capabilities{});
  EXPECT_EQ(runs_on("90x"), Capabilities{});
}

TEST(Architectures, any_of_a_list_is_enough) {
  EXPECT_TRUE(any_architecture_runs_on("80;89;90a;100f;110f;120f", 103));
  EXPECT_FALSE(any_architecture_runs_on("80;89;90a;100f;110f;120f", 130));
  EXPECT_FALSE(any_architecture_runs_on("", 90));
}

TEST(Architectures, this_build_holds_at_least_one) {
  bool any = false;
  for (const std::int32_t capability : kCapabilities) any = any || any_architecture_runs_on(built::kCudaArchitectures, capability);
  EXPECT_TRUE(any) << built::kCudaArchitectures;
}

}  // namespace
}  // namespace finescale::cuda
