// To choose is to walk a list: which row is taken, why the others are not, what it costs, and what a plan promises.
#include "ops/dispatch.h"
#include "support/gemm_case.h"
#include "support/grouped_gemm_case.h"

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace {
std::size_t allocations = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace finescale::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Refusal at_most_8_rows(const GemmProblem& p, const DeviceInfo&) {
  return p.a.rows > 8 ? Refusal{"M must be at most", p.a.rows, 8} : Refusal{};
}
Refusal whole_blocks(const GemmProblem& p, const DeviceInfo&) {
  return p.a.cols % 64 != 0 ? Refusal{"K must be a multiple of", p.a.cols, 64} : Refusal{};
}
Refusal better_with_many(const GemmProblem& p, const DeviceInfo&) { return p.a.rows < 4 ? Refusal{"M is small", p.a.rows, 4} : Refusal{}; }

constexpr Target kSm100{.kind = DeviceKind::cuda, .min_capability = 100, .max_capability = 103, .tier = 2};
constexpr Target kAnyCuda{.kind = DeviceKind::cuda};

constexpr Kernel<GemmProblem> kTuned[] = {
    {.name = "toy_sm100", .target = kSm100, .supports = whole_blocks},
    {.name = "toy_gemv", .target = kAnyCuda, .supports = at_most_8_rows},
};
constexpr Kernel<GemmProblem> kGeneric[] = {
    {.name = "toy_large", .target = kAnyCuda, .supports = whole_blocks, .suits = better_with_many},
    {.name = "toy_generic", .target = kAnyCuda, .suits = better_with_many},
};
constexpr std::span<const Kernel<GemmProblem>> kTables[] = {kTuned, kGeneric};

GemmProblem shape(std::int64_t rows, std::int64_t cols) { return {.a = {.format = kBf16, .rows = rows, .cols = cols}}; }
DeviceInfo gpu(std::int32_t capability, std::uint64_t armed) {
  return {.kind = DeviceKind::cuda, .capability = capability, .armed = armed};
}

std::string_view chosen(std::int64_t rows, std::int64_t cols, const DeviceInfo& device) {
  const auto* kernel = choose<GemmProblem>(kTables, shape(rows, cols), device);
  return kernel != nullptr ? kernel->name : "none";
}

TEST(Choose, takes_the_first_row_that_supports_and_suits) {
  EXPECT_EQ(chosen(64, 128, gpu(100, 2)), "toy_sm100");
  EXPECT_EQ(chosen(8, 128, gpu(90, 0)), "toy_gemv");
  EXPECT_EQ(chosen(64, 128, gpu(90, 0)), "toy_large");
  EXPECT_EQ(chosen(64, 100, gpu(90, 0)), "toy_generic");
}

TEST(Choose, falls_back_to_the_first_row_that_supports) {
  constexpr std::span<const Kernel<GemmProblem>> tables[] = {kGeneric};
  EXPECT_EQ(choose<GemmProblem>(tables, shape(1, 128), gpu(90, 0))->name, "toy_large");
  EXPECT_EQ(choose<GemmProblem>(tables, shape(1, 100), gpu(90, 0))->name, "toy_generic");
}

TEST(Choose, looks_at_kind_capability_and_arming_of_chips_that_are_not_here) {
  EXPECT_EQ(chosen(64, 128, gpu(100, 0)), "toy_large") << "not armed";
  EXPECT_EQ(chosen(64, 128, gpu(103, 3)), "toy_sm100");
  EXPECT_EQ(chosen(64, 128, gpu(120, 2)), "toy_large") << "above the range";
  EXPECT_EQ(chosen(64, 128, DeviceInfo{}), "none") << "a CPU";
  const Target avx512{.isa = static_cast<std::uint64_t>(Isa::avx2) | static_cast<std::uint64_t>(Isa::avx512)};
  EXPECT_TRUE(refuse_target(avx512, {.isa = static_cast<std::uint64_t>(Isa::avx512)}));
  EXPECT_FALSE(refuse_target(avx512, {.isa = ~std::uint64_t{0}}));
}

TEST(Choose, builds_no_sentence_while_it_walks) {
  std::vector<Kernel<GemmProblem>> rows(40, Kernel<GemmProblem>{.name = "toy", .target = kAnyCuda, .supports = whole_blocks});
  const std::span<const Kernel<GemmProblem>> tables[] = {rows};
  const GemmProblem problem = shape(3, 65);
  const DeviceInfo device = gpu(90, 0);
  const std::size_t before = allocations;
  const auto* kernel = choose<GemmProblem>(tables, problem, device);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(kernel, nullptr);
  EXPECT_EQ(refusal_sentence("toy", whole_blocks(problem, device)), "toy: K must be a multiple of (got 65, wants 64)");
}

struct Product {
  GemmCase c{};
  GemmProblem tags = gemm_tags(c);
  GemmOperands<OwnedMatrix> operands = make_gemm_operands(c, tags, cpu_device());
  GemmProblem problem = gemm_problem(tags, operands, false);
};

TEST(Force, a_problem_takes_the_kernel_that_it_names) {
  Product product;
  product.problem.kernel = "gemm_reference";
  const auto made = plan(product.problem, cpu_device());
  ASSERT_TRUE(made) << made.status().sentence;
  EXPECT_EQ(made->kernel->name, "gemm_reference");
}

TEST(Force, an_unknown_name_is_an_error_that_lists_the_nearest) {
  Product product;
  product.problem.kernel = "gemm_refrence";
  const auto made = plan(product.problem, cpu_device());
  EXPECT_EQ(made.status().code, Code::invalid_argument);
  EXPECT_THAT(made.status().sentence, AllOf(HasSubstr("kernel = \"gemm_refrence\""), HasSubstr("nearest are gemm_reference")));
}

TEST(Force, a_device_forces_the_op_that_the_name_begins_with) {
  const auto device = Device::open("cpu", {.kernel = "gemm_reference"});
  ASSERT_TRUE(device);
  EXPECT_EQ(plan(Product().problem, *device)->kernel->name, "gemm_reference");
  const OwnedMatrix from = *random_matrix({.format = kNvfp4, .rows = 2, .cols = 32}, 1);
  const OwnedMatrix to = *OwnedMatrix::make({.format = kF32, .rows = 2, .cols = 32});
  EXPECT_TRUE(plan(DequantizeProblem{.from = from.view(), .to = to.view()}, *device)) << "gemm's name is not dequantize's";
  const auto unknown = Device::open("cpu", {.kernel = "dequantize_nothing"});
  EXPECT_TRUE(plan(Product().problem, *unknown));
  EXPECT_FALSE(plan(DequantizeProblem{.from = from.view(), .to = to.view()}, *unknown));
}

TEST(Force, the_environment_is_read_when_the_device_is_opened) {
  ASSERT_EQ(setenv("FINESCALE_KERNEL", "gemm_reference", 1), 0);
  const auto device = Device::open("cpu");
  ASSERT_EQ(unsetenv("FINESCALE_KERNEL"), 0);
  ASSERT_TRUE(device);
  EXPECT_EQ(plan(Product().problem, *device)->kernel->name, "gemm_reference");
  EXPECT_EQ(Device::open("cpu")->forced_kernel(), "");
}

TEST(Explain, lists_every_row_with_its_verdict) {
  const auto rows = explain(Product().problem, cpu_device());
  EXPECT_EQ(rows.size(), kernel_names<GemmProblem>().size());
  int taken = 0;
  for (const Explanation& row : rows) {
    EXPECT_FALSE(row.sentence.empty()) << row.kernel;
    EXPECT_TRUE(row.accepted || !row.taken) << row.kernel;
    taken += row.taken ? 1 : 0;
  }
  EXPECT_EQ(taken, 1);
  Product bad;
  bad.problem.b.cols = 7;
  const auto refused = explain(bad.problem, cpu_device());
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused[0].sentence, HasSubstr("b.cols = 7"));
}

TEST(Plan, is_a_value_that_serves_other_pointers) {
  static_assert(std::is_trivially_copyable_v<Plan<GemmProblem>>);
  Product product, other;
  product.problem.kernel = "gemm_reference";
  const auto made = plan(product.problem, cpu_device());
  ASSERT_TRUE(made);
  const Plan<GemmProblem> kept = *made;
  ASSERT_TRUE(run(kept, product.problem, {.device = &cpu_device()}));
  ASSERT_TRUE(run(kept, other.problem, {.device = &cpu_device()}));
  expect_same(product.operands.d, other.operands.d);
}

TEST(Plan, does_not_look_at_pointers) {
  Product product;
  const auto with = plan(product.problem, cpu_device()), without = plan(product.tags, cpu_device());
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->kernel, without->kernel);
}

TEST(Run, refuses_what_a_plan_cannot_run_on) {
  Product product;
  product.problem.d.format = kFp8E4m3Block128;
  const OwnedMatrix d = *OwnedMatrix::make(product.problem.d);
  product.problem.d = d.view();
  product.problem.kernel = "gemm_reference";
  const auto made = plan(product.problem, cpu_device());
  ASSERT_TRUE(made) << made.status().sentence;
  const auto sentence = [&](const Plan<GemmProblem>& plan, const Execution& execution) {
    return run(plan, product.problem, execution).sentence;
  };
  const GuardedBuffer scratch(made->choice.scratch_bytes + 256);
  Execution execution{.device = &cpu_device()};
  EXPECT_THAT(sentence({}, execution), HasSubstr("plan: empty"));
  EXPECT_THAT(sentence(*made, {}), HasSubstr("execution.device is null"));
  EXPECT_THAT(sentence(*made, execution), HasSubstr("workspace.scratch is null: this plan needs 65536 bytes"));
  execution.workspace = {scratch.data(), 65535, nullptr, 0};
  EXPECT_THAT(sentence(*made, execution), HasSubstr("workspace.scratch_bytes = 65535"));
  execution.workspace = {scratch.data() + 64, 65536, nullptr, 0};
  EXPECT_THAT(sentence(*made, execution), HasSubstr("must be 256-byte aligned"));
  EXPECT_THAT(sentence({&kTuned[0], {}}, execution), HasSubstr("the plan was made for another kind of device"));
  execution.workspace.scratch = scratch.data();
  EXPECT_EQ(sentence(*made, execution), "");
}

// A kernel cuts its workspace by the problem, so a plan of a smaller one would have it write past the end.
TEST(Run, refuses_a_plan_made_for_another_problem) {
  Product product;
  const Device& device = cpu_device();
  const auto sentence = [&](const Plan<GemmProblem>& plan) { return run(plan, product.problem, {.device = &device}).sentence; };
  product.problem.kernel = "gemm_any_any_any_portable";
  const auto made = plan(product.problem, device);
  ASSERT_TRUE(made) << made.status().sentence;
  Plan<GemmProblem> smaller = *made;
  smaller.choice.scratch_bytes -= 64;
  EXPECT_THAT(sentence(smaller), HasSubstr("plan: made for another problem; this one needs"));
  constexpr Kernel<GemmProblem> kOneRow{.name = "gemm_one_row", .target = {}, .supports = [](const GemmProblem& p, const DeviceInfo&) {
                                          return Refusal{p.a.rows != 1 ? "rows of A" : nullptr, p.a.rows, 1};
                                        }};
  EXPECT_THAT(sentence({&kOneRow, {}}), HasSubstr("plan: made for another problem; gemm_one_row: rows of A"));
}

// Every row of the table at every smaller M.
TEST(WorkspaceBound, covers_every_row_and_every_smaller_problem) {
  for (const Format& d : {kF32, kNvfp4, kFp8E4m3Block128}) {
    GemmCase c{.d = d, .m = 150, .n = 70, .k = 96};
    const GemmProblem problem = gemm_tags(c);
    const Choice bound = workspace_bound(problem, cpu_device());
    for (std::int64_t rows = 0; rows <= c.m; ++rows) {
      const GemmProblem fewer = with_strides(fewer_rows(problem, rows));
      for (const auto& table : kernel_tables<GemmProblem>()) {
        for (const auto& kernel : table) {
          if (refuse(kernel, fewer, cpu_device().info())) continue;
          const Choice choice = configure(kernel, fewer, cpu_device().info());
          EXPECT_LE(choice.scratch_bytes, bound.scratch_bytes) << kernel.name << ", M = " << rows;
          EXPECT_LE(choice.sync_bytes, bound.sync_bytes) << kernel.name << ", M = " << rows;
        }
      }
    }
  }
}

// Tokens without a row take room too: there may be more of them than grouped rows.
TEST(WorkspaceBound, covers_more_tokens_than_rows_that_sum_into_them) {
  const GroupedCase c{.gemm = {.n = 70, .k = 96}, .sizes = {3, 0, 6}, .tokens = 40, .summed = true};
  const GroupedGemmProblem given = grouped_tags(c);
  const Choice bound = workspace_bound(given, cpu_device());
  for (std::int64_t rows = 1; rows <= c.routed_rows(); ++rows) {
    GroupedGemmProblem fewer = with_strides(given);
    fewer.routing.gather_length = rows;
    for (const auto& table : kernel_tables<GroupedGemmProblem>()) {
      for (const auto& kernel : table) {
        if (refuse(kernel, fewer, cpu_device().info())) continue;
        const Choice choice = configure(kernel, fewer, cpu_device().info());
        EXPECT_LE(choice.scratch_bytes, bound.scratch_bytes) << kernel.name << ", rows = " << rows;
        EXPECT_LE(choice.sync_bytes, bound.sync_bytes) << kernel.name << ", rows = " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace finescale::test
