// A backend that is not in the library: a table of rows in a test, chosen by the same walk, judged by the same oracle.
#include "support/gemm_case.h"
#include "support/product_checks.h"

#include <finescale/finish.h>
#include <finescale/kernel.h>

#include <gtest/gtest.h>

namespace finescale::test {
namespace {

Accumulation pairwise_adds(const GemmProblem&) { return {.order = 1'000'001}; }

Refusal takes(const GemmProblem& p, const DeviceInfo&) {
  if (!p.d.format.is_plain()) return {"D must be f32, f16 or bf16"};
  if (p.epilogue.gate != Gate::none) return {"no gate", static_cast<std::int64_t>(p.epilogue.gate), 0};
  return {};
}

Refusal is_small(const GemmProblem& p, const DeviceInfo&) { return p.a.rows > 16 ? Refusal{"M", p.a.rows, 16} : Refusal{}; }

Choice keeps_one_partial_sum(const GemmProblem&, const DeviceInfo&) { return {.scratch_bytes = 256, .config = 7}; }

float value(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return element_at(m, batch, row, col) * block_scale_at(m, batch, row, col);
}

// Even and odd k apart, one of the sums in the workspace.
Status run_pairwise(const GemmProblem& p, const Choice& choice, const Execution& execution) {
  if (choice.config != 7) return internal_error("configure() was not asked");
  auto& odd = *reinterpret_cast<float*>(execution.workspace.scratch);
  for (std::int64_t b = 0; b < p.d.batch; ++b) {
    for (std::int64_t m = 0; m < p.d.rows; ++m) {
      for (std::int64_t n = 0; n < p.d.cols; ++n) {
        float even = odd = 0.0f;
        for (std::int64_t k = 0; k < p.a.cols; ++k) (k % 2 == 0 ? even : odd) += value(p.a, b, m, k) * value(p.b, b, n, k);
        store_plain(p.d, b, m, n, finish_value(p, {b, m, n, b, m, b}, even + odd, 0.0f));
      }
    }
  }
  return {};
}

constexpr Kernel<GemmProblem> kMadeUp[] = {
    {.name = "gemm_made_up_pairwise",
     .target = {},
     .adds = pairwise_adds,
     .supports = takes,
     .suits = is_small,
     .configure = keeps_one_partial_sum,
     .run = run_pairwise},
};

TEST(MadeUpKernel, is_chosen_configured_run_and_judged_like_any_other) {
  std::vector<std::span<const Kernel<GemmProblem>>> tables{kMadeUp};
  const auto own = kernel_tables<GemmProblem>();
  tables.insert(tables.end(), own.begin(), own.end());
  const GemmCase c{.a = kBf16, .b = kMxfp4, .batch = 2, .m = 9, .n = 14, .k = 101, .activation = Activation::gelu_erf, .bias = kF16};
  const GemmProblem tags = gemm_tags(c);
  const auto operands = make_gemm_operands(c, tags, cpu_device());
  const GemmProblem problem = gemm_problem(tags, operands, false);
  const auto* kernel = choose<GemmProblem>(tables, with_strides(problem), cpu_device().info());
  ASSERT_EQ(kernel, &kMadeUp[0]);
  ASSERT_EQ(find_kernel<GemmProblem>(tables, "gemm_made_up_pairwise"), kernel);
  const Status status = run_kernel(*kernel, problem, cpu_device());
  ASSERT_TRUE(status) << status.sentence;
  EXPECT_TRUE(within_bound(problem, operands.d.view(), kernel->adds(problem)));
  expect_only_elements_written(operands.d);
}

TEST(MadeUpKernel, leaves_what_it_refuses_to_the_rows_below) {
  std::vector<std::span<const Kernel<GemmProblem>>> tables{kMadeUp};
  const auto own = kernel_tables<GemmProblem>();
  tables.insert(tables.end(), own.begin(), own.end());
  const auto taken = [&](const GemmCase& c) { return choose<GemmProblem>(tables, with_strides(gemm_tags(c)), cpu_device().info()); };
  for (const GemmCase& c : {GemmCase{.m = 17}, GemmCase{.gate = Gate::halves_gate_first}, GemmCase{.d = kMxfp4}}) {
    ASSERT_NE(taken(c), nullptr);
    EXPECT_NE(taken(c), &kMadeUp[0]);
  }
}

}  // namespace
}  // namespace finescale::test
