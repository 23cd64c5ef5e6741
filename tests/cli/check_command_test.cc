// check: passes on every kernel for every format and epilogue, and finds every planted fault.
#include "cli/cli_process.h"

#include <finescale/formats/format.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace finescale::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> block_formats() {
  std::vector<std::string> names;
  for (const NamedFormat& row : kFormats) {
    if (!row.format.is_plain()) names.emplace_back(row.name);
  }
  return names;
}

void expect_exit(int exit, const std::string& arguments) {
  const Ran ran = run_cli(arguments);
  EXPECT_EQ(ran.exit, exit) << arguments << "\n" << ran.out << ran.err;
}

// A fault that check was told to plant: found, and named.
void expect_found(const std::string& arguments) {
  for (const char* fault : {"scale", "code", "tile"}) {
    const Ran ran = run_cli(fmt::format("{} --inject {}", arguments, fault));
    EXPECT_EQ(ran.exit, kDifferences) << arguments << " " << fault << "\n" << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("planted a {} fault", fault)));
    EXPECT_THAT(ran.out, HasSubstr("WRONG"));
  }
}

TEST(CheckCommand, passes_for_every_weight_format_and_output) {
  for (const std::string& b : block_formats()) {
    for (const std::string& d : {std::string("f32"), std::string("f16"), std::string("bf16"), b}) {
      expect_exit(kOk, fmt::format("check gemm --m 17 --n 37 --k 150 --a bf16 --b {} --d {} --kernel all", b, d));
      expect_exit(kOk, fmt::format("check gemm --m 3 --n 37 --k 150 --a {} --b {} --d {} --kernel all --prepared --batch 2", b, b, d));
    }
  }
}

TEST(CheckCommand, passes_for_every_epilogue) {
  const std::string sizes = "check gemm --m 9 --n 21 --k 100 --kernel all";
  for (const char* act : {"none", "gelu_tanh", "gelu_erf", "silu", "relu", "relu2"}) {
    for (const char* gate : {"none", "halves_gate_first", "halves_up_first", "alternating_rows", "second_matrix"}) {
      expect_exit(kOk, fmt::format("{} --act {} --gate {} --bias bf16 --residual --beta 0.5", sizes, act, gate));
    }
  }
  expect_exit(kOk, sizes + " --alpha 0.25 --residual f16");
  expect_exit(kOk, sizes + " --bias --residual --beta 0");
}

TEST(CheckCommand, passes_for_every_routing) {
  for (const char* routing : {"row_groups", "end_offsets", "offsets_from_zero", "counts"}) {
    const std::string problem = fmt::format("check grouped_gemm --m 37 --n 21 --k 96 --groups 5 --kernel all --routing {}", routing);
    expect_exit(kOk, problem);
    expect_exit(kOk, problem + " --a nvfp4 --scale-layout scale_128x4 --bias --act silu --gate halves_gate_first");
  }
  const std::string offsets = "check grouped_gemm --m 37 --n 21 --k 96 --groups 5 --kernel all";
  expect_exit(kOk, offsets + " --a nvfp4 --scale-layout scale_128x4_per_group");
  expect_exit(kOk, offsets + " --tokens 20");
  expect_exit(kOk, offsets + " --tokens 20 --weighted --d nvfp4");
}

TEST(CheckCommand, passes_for_every_conversion) {
  for (const std::string& format : block_formats()) {
    for (const char* plain : {"f32", "f16", "bf16"}) {
      expect_exit(kOk, fmt::format("check quantize --m 33 --k 150 --a {} --d {} --kernel all", plain, format));
      expect_exit(kOk, fmt::format("check dequantize --m 33 --k 150 --a {} --d {} --batch 2 --kernel all", format, plain));
    }
    expect_exit(kOk, fmt::format("check repack --m 33 --k 150 --a {} --kernel all", format));
    expect_exit(kOk, fmt::format("check repack --m 33 --k 150 --a {} --codes panel16_v1 --kernel all", format));
  }
  for (const char* producer : {"silu_mul", "gelu_tanh_mul", "gelu_erf_mul", "gelu_tanh", "gelu_erf", "rms_norm"}) {
    expect_exit(kOk, fmt::format("check quantize --m 9 --k 150 --a bf16 --producer {} --kernel all", producer));
  }
  for (const char* layout : {"linear", "scale_128x4", "scale_8x4"}) {
    expect_exit(kOk, fmt::format("check repack --m 130 --k 150 --scale-layout {} --to-codes high_nibble_first --kernel all", layout));
  }
}

TEST(CheckCommand, passes_for_empty_and_tiny_problems) {
  for (const char* sizes : {"--m 0 --n 5 --k 5", "--m 5 --n 0 --k 5", "--m 5 --n 5 --k 0", "--m 1 --n 1 --k 1"}) {
    expect_exit(kOk, fmt::format("check gemm {} --bias --kernel all", sizes));
  }
  expect_exit(kOk, "check gemv --n 5 --k 33 --kernel all");
  expect_exit(kOk, "check quantize --m 0 --k 7");
}

TEST(CheckCommand, finds_a_fault_in_every_format) {
  for (const std::string& b : block_formats()) {
    expect_found(fmt::format("check gemm --m 17 --n 37 --k 150 --a bf16 --b {}", b));
    expect_found(fmt::format("check gemm --m 17 --n 37 --k 150 --a {} --b {} --d {} --prepared", b, b, b));
    expect_found(fmt::format("check quantize --m 33 --k 150 --a bf16 --d {}", b));
    expect_found(fmt::format("check dequantize --m 33 --k 150 --a {} --d f32", b));
    expect_found(fmt::format("check repack --m 33 --k 150 --a {}", b));
  }
}

TEST(CheckCommand, finds_a_fault_under_every_epilogue) {
  for (const char* act : {"none", "gelu_tanh", "gelu_erf", "silu", "relu", "relu2"}) {
    for (const char* gate : {"none", "halves_gate_first", "halves_up_first", "alternating_rows", "second_matrix"}) {
      expect_found(fmt::format("check gemm --m 9 --n 21 --k 100 --act {} --gate {} --bias --residual", act, gate));
    }
  }
}

TEST(CheckCommand, finds_a_fault_under_every_routing) {
  for (const char* routing : {"row_groups", "end_offsets", "offsets_from_zero", "counts"}) {
    expect_found(fmt::format("check grouped_gemm --m 37 --n 21 --k 96 --groups 5 --routing {}", routing));
  }
  expect_found("check grouped_gemm --m 37 --n 21 --k 96 --tokens 20 --weighted");
}

// Above 2^28 products only a sample is judged; the fault must lie where it looks.
TEST(CheckCommand, finds_a_fault_in_a_sampled_problem) {
  const Ran ran = run_cli("check gemm --m 600 --n 900 --k 600 --inject code");
  EXPECT_EQ(ran.exit, kDifferences) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("% of 540000"));
}

TEST(CheckCommand, seeds_give_other_faults_and_the_same_again) {
  const std::string problem = "check gemm --m 17 --n 37 --k 150 --inject code --seed ";
  const Ran first = run_cli(problem + "1"), again = run_cli(problem + "1"), other = run_cli(problem + "2");
  EXPECT_EQ(first.out, again.out);
  EXPECT_NE(first.out, other.out);
}

TEST(CheckCommand, says_so_where_no_site_would_show) {
  for (const char* problem : {"gemm --m 5 --n 5 --k 0", "gemm --m 0 --n 5 --k 5", "gemm --m 5 --n 5 --k 16 --alpha 0"}) {
    const Ran ran = run_cli(fmt::format("check {} --inject code", problem));
    EXPECT_EQ(ran.exit, kUsage) << problem << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("--inject: no site"));
  }
}

}  // namespace
}  // namespace finescale::cli
