// Instruction sets from CPUID words, and levels by name, for chips that need not be here.
#include "backends/cpu/cpu_info.h"

#include <finescale/gemm.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace finescale::cpu {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t bit_of(Isa isa) { return static_cast<std::uint64_t>(isa); }
constexpr std::uint32_t at(int bit) { return std::uint32_t{1} << bit; }

CpuWords everything() {
  CpuWords words;
  words.leaf1_ecx = at(12) | at(27) | at(29);
  words.leaf7_ebx = at(5) | at(16) | at(17) | at(30) | at(31);
  words.leaf7_ecx = at(1) | at(11);
  words.leaf7_edx = at(22) | at(23) | at(24) | at(25);
  words.leaf7_1_eax = at(5);
  words.xcr0 = 0x600E6;
  words.amx_granted = true;
  return words;
}

TEST(CpuInfo, reads_every_set_from_its_bits) {
  EXPECT_EQ(isa_of(CpuWords{}), 0u);
  EXPECT_EQ(isa_of(everything()), up_to(Isa::amx_int8));
}

TEST(CpuInfo, a_set_needs_its_registers_enabled) {
  CpuWords words = everything();
  words.xcr0 = 0x6;
  EXPECT_EQ(isa_of(words), bit_of(Isa::avx2));
  words.xcr0 = 0x2;
  EXPECT_EQ(isa_of(words), 0u);
  words = everything();
  words.leaf1_ecx &= ~at(27);
  EXPECT_EQ(isa_of(words), 0u);
}

TEST(CpuInfo, avx2_means_fma_and_f16c_too) {
  for (const int missing : {12, 29}) {
    CpuWords words = everything();
    words.leaf1_ecx &= ~at(missing);
    EXPECT_EQ(isa_of(words) & up_to(Isa::avx512_fp16), 0u);
  }
}

TEST(CpuInfo, amx_needs_the_grant_of_the_system) {
  CpuWords words = everything();
  words.amx_granted = false;
  EXPECT_EQ(isa_of(words), up_to(Isa::avx512_fp16));
}

TEST(CpuInfo, a_level_lets_lower_sets_through) {
  EXPECT_EQ(*level_mask("portable"), 0u);
  EXPECT_EQ(*level_mask("avx2"), bit_of(Isa::avx2));
  EXPECT_EQ(*level_mask("avx512_vnni"), bit_of(Isa::avx2) | bit_of(Isa::avx512) | bit_of(Isa::avx512_vnni));
  EXPECT_EQ(*level_mask(""), ~std::uint64_t{0});
}

TEST(CpuInfo, an_unknown_level_lists_the_known_ones) {
  const auto device = Device::open("cpu", {.cpu_level = "sse9"});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.status().code, Code::invalid_argument);
  for (const Level& level : kLevels) EXPECT_THAT(device.status().sentence, HasSubstr(std::string(level.name)));
  EXPECT_THAT(device.status().sentence, HasSubstr("sse9"));
}

TEST(CpuInfo, the_device_says_what_it_is) {
  const Device device = *Device::open("cpu", {.threads = 3});
  EXPECT_EQ(device.info().kind, DeviceKind::cpu);
  EXPECT_EQ(device.info().workers, 3);
  EXPECT_FALSE(device.model().empty());
  for (const std::int32_t threads : {-1, 4097, 2'000'000'000}) {
    EXPECT_EQ(Device::open("cpu", {.threads = threads}).status().code, Code::invalid_argument) << threads;
  }
}

GemmProblem small_problem() {
  return {.a = {.format = kF32, .rows = 1, .cols = 64},
          .b = {.format = kNvfp4, .rows = 16, .cols = 64},
          .d = {.format = kF32, .rows = 1, .cols = 16}};
}

TEST(CpuLevel, caps_what_is_chosen) {
  const Device device = *Device::open("cpu", {.cpu_level = "portable"});
  EXPECT_EQ(device.info().isa, 0u);
  const auto made = plan(small_problem(), device);
  ASSERT_TRUE(made) << made.status().sentence;
  EXPECT_EQ(made->kernel->name, "gemm_any_any_any_portable");
}

TEST(CpuLevel, comes_from_the_environment_unless_given) {
  ASSERT_EQ(setenv("FINESCALE_CPU_LEVEL", "portable", 1), 0);
  EXPECT_EQ(Device::open("cpu")->info().isa, 0u);
  EXPECT_EQ(Device::open("cpu", {.cpu_level = "avx2"})->info().isa, detected_isa() & bit_of(Isa::avx2));
  ASSERT_EQ(setenv("FINESCALE_CPU_LEVEL", "nothing", 1), 0);
  EXPECT_EQ(Device::open("cpu").status().code, Code::invalid_argument);
  unsetenv("FINESCALE_CPU_LEVEL");
}

TEST(CpuLevel, a_forced_kernel_above_it_is_refused_with_its_rule) {
  const Device device = *Device::open("cpu", {.cpu_level = "portable"});
  GemmProblem problem = small_problem();
  problem.kernel = "gemm_any_any_any_avx2";
  const auto made = plan(problem, device);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.status().code, Code::unsupported);
  EXPECT_THAT(made.status().sentence, HasSubstr("instruction set"));
}

TEST(CpuLevel, small_prepared_products_take_the_gemv_row_and_invariant_ones_do_not) {
  if ((detected_isa() & bit_of(Isa::avx2)) == 0) GTEST_SKIP() << "this CPU has no AVX2";
  const Device device = *Device::open("cpu", {.cpu_level = "avx2"});
  GemmProblem problem = small_problem();
  EXPECT_EQ(plan(problem, device)->kernel->name, "gemm_any_any_any_avx2");
  problem.b.codes = static_cast<CodeLayout>(Panel16::kId);
  EXPECT_EQ(plan(problem, device)->kernel->name, "gemm_any_any_any_avx2_gemv");
  problem.batch_invariant = true;
  EXPECT_EQ(plan(problem, device)->kernel->name, "gemm_any_any_any_avx2");
  problem.batch_invariant = false;
  problem.a.rows = problem.d.rows = 100;
  EXPECT_EQ(plan(problem, device)->kernel->name, "gemm_any_any_any_avx2");
}

}  // namespace
}  // namespace finescale::cpu
