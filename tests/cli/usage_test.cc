// Options: wrong ones exit with the promised code and a sentence on stderr, and print nothing else.
#include "cli/cli_process.h"

#include "finescale_built.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace finescale::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Wrong {
  const char* arguments;
  int exit;
  const char* sentence;
};

class WrongUse : public testing::TestWithParam<Wrong> {};

TEST_P(WrongUse, says_what_is_wrong) {
  const Ran ran = run_cli(GetParam().arguments);
  EXPECT_EQ(ran.exit, GetParam().exit) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().sentence));
  EXPECT_THAT(ran.out, IsEmpty());
}

constexpr Wrong kWrongUses[] = {
    {"", kUsage, "subcommand"},
    {"frobnicate", kUsage, "frobnicate"},
    {"check gemm --m 1 --n 1 --k 1 --frob", kUsage, "--frob"},
    {"check gemm --m 1 --n 1", kUsage, "--k is missing"},
    {"check gemm --m one --n 1 --k 1", kUsage, "--m"},
    {"check gemm --m -1 --n 1 --k 1", kUsage, "--m"},
    {"check conv --m 1 --n 1 --k 1", kUsage, "conv"},
    {"check gemm --m 1 --n 1 --k 1 --b nvfp5", kUsage, "nvfp5"},
    {"check gemm --m 1 --n 1 --k 1 --b f32", kUsage, "b"},
    {"check gemm --m 1 --n 1 --k 1 --act tanh", kUsage, "gelu_tanh"},
    {"check gemm --m 1 --n 1 --k 1 --routing counts", kUsage, "--routing: gemm does not read it"},
    {"check gemv --m 2 --n 1 --k 1", kUsage, "gemv has one row"},
    {"check quantize --m 2 --n 1 --k 1", kUsage, "--n: quantize does not read it"},
    {"check repack --m 2 --k 1 --d nvfp4", kUsage, "--d"},
    {"check grouped_gemm --m 2 --n 1 --k 1 --weighted", kUsage, "--tokens"},
    {"check gemm --m 1 --n 1 --k 1 --device tpu", kUsage, "tpu"},
    {"check gemm --m 1 --n 1 --k 1 --kernel gemm_referense", kUsage, "gemm_reference"},
    {"check gemm --m 1 --n 1 --k 1 --inject everything", kUsage, "everything"},
    {"check gemm --m 1 --n 1 --k 1 --seed 18446744073709551616", kUsage, "--seed: \"18446744073709551616\""},
    {"check gemm --m 1 --n 1 --k 1 --seed -1", kUsage, "from 0 to 18446744073709551615"},
    {"check gemm --m 1 --n 1 --k 1 --threads -1", kUsage, "from 0 to 2147483647"},
    {"bench gemm --m 1 --n 1 --k 1 --cold never", kUsage, "--cold"},
    {"bench gemm --m 1 --n 1 --k 1 --cold 4611686018427387904", kUsage, "--cold"},
    {"bench gemm --m 64 --n 4096 --k 8192 --cold 1099511627776", kInternal, "of memory"},
    {"bench gemm --m 1 --n 1 --k 1 --seconds 0", kUsage, "--seconds"},
    {"bench gemm --m 1 --n 1 --k 1 --json --quiet", kUsage, "--quiet"},
    {"explain gemm --n 1 --k 1", kUsage, "--m is missing"},
    {"info now", kUsage, "now"},
    {"inspect", kUsage, "path"},
    {"quantize a.safetensors", kUsage, "out"},
    {"quantize a.safetensors b.safetensors --format f32", kUsage, "f32"},
    {"dequantize a.safetensors b.safetensors --dtype nvfp4", kUsage, "nvfp4"},
    {"convert a.safetensors b.safetensors", kUsage, "--encoding"},
    {"quantize a.safetensors b.safetensors --format mxfp8_e5m2", kUnsupported, "mxfp8_e5m2"},
    {"check gemm --m 4 --n 4 --k 4 --kernel gemm_any_any_any_avx2_gemv", kUnsupported, "gemm_any_any_any_avx2_gemv"},
    {"check gemm --m 90000000 --n 1 --k 90000000", kInternal, "memory"},
    {"check gemm --m 1099511627776 --n 1099511627776 --k 1099511627776", kUsage, "a"},
    {"check gemm --m 2000000000000 --n 1 --k 1", kUsage, "--m"},
    {"inspect no-such-file.safetensors", kFiles, "no-such-file"},
    {"quantize no-such-file.safetensors out.safetensors", kFiles, "no-such-file"},
    {"dequantize no-such-file.safetensors out.safetensors", kFiles, "no-such-file"},
    {"convert no-such-file.safetensors out.safetensors --encoding modelopt", kFiles, "no-such-file"},
    {"check gemm --tensors no-such-file.safetensors", kFiles, "no-such-file"},
};

TEST(Usage, a_kernel_forced_by_the_environment_must_name_an_op) {
  const std::string check = "check gemm --m 2 --n 3 --k 16";
  ASSERT_EQ(setenv("FINESCALE_KERNEL", "gem_reference", 1), 0);
  const Ran misspelt = run_cli(check);
  ASSERT_EQ(setenv("FINESCALE_KERNEL", "quantize_reference", 1), 0);
  const Ran other = run_cli(check);
  ASSERT_EQ(unsetenv("FINESCALE_KERNEL"), 0);
  EXPECT_EQ(misspelt.exit, kUsage);
  EXPECT_THAT(misspelt.err, HasSubstr("gem_reference"));
  EXPECT_EQ(other.exit, kOk) << other.err;
}

INSTANTIATE_TEST_SUITE_P(Usage, WrongUse, testing::ValuesIn(kWrongUses),
                         [](const testing::TestParamInfo<Wrong>& wrong) { return "case_" + std::to_string(wrong.index); });

TEST(Usage, a_missing_gpu_is_a_device_error_or_an_unsupported_build) {
  const Ran ran = run_cli("check gemm --m 1 --n 1 --k 1 --device cuda:250");
  EXPECT_EQ(ran.exit, built::kCuda ? kDevice : kUnsupported) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("cuda:250"));
}

TEST(Usage, help_teaches_each_command) {
  const Ran top = run_cli("--help");
  EXPECT_EQ(top.exit, kOk);
  EXPECT_THAT(top.out, HasSubstr("Exit codes:"));
  for (const char* command : {"info", "inspect", "quantize", "dequantize", "convert", "check", "bench", "explain"}) {
    EXPECT_THAT(top.out, HasSubstr(command));
    const Ran ran = run_cli(std::string(command) + " --help");
    EXPECT_EQ(ran.exit, kOk);
    EXPECT_THAT(ran.out, HasSubstr(std::string("finescale ") + command));
  }
}

TEST(Usage, version_says_what_is_built_in) {
  const Ran ran = run_cli("--version");
  EXPECT_EQ(ran.exit, kOk);
  EXPECT_THAT(ran.out, HasSubstr("finescale 0."));
  EXPECT_THAT(ran.out, HasSubstr("reference cpu"));
  EXPECT_THAT(ran.out, HasSubstr("nvfp4"));
}

}  // namespace
}  // namespace finescale::cli
