// Other libraries' threads behind Executor, each in a few lines; products have the same bits on all of them.
#include "cpu/gemm_case.h"

#include <optional>

#ifdef FINESCALE_TEST_TBB
#include <oneapi/tbb/parallel_for.h>
#endif
#ifdef FINESCALE_TEST_OPENMP
#include <omp.h>
#endif

namespace finescale::test {
namespace {

std::optional<Executor> tbb_executor() {
#ifdef FINESCALE_TEST_TBB
  return Executor{2, nullptr, [](void*, std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
                    oneapi::tbb::parallel_for(std::int32_t{0}, tasks, [=](std::int32_t index) { task(context, index); });
                  }};
#else
  return std::nullopt;
#endif
}

std::optional<Executor> openmp_executor() {
#ifdef FINESCALE_TEST_OPENMP
  return Executor{omp_get_max_threads(), nullptr, [](void*, std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
#pragma omp parallel for schedule(dynamic)
                    for (std::int32_t index = 0; index < tasks; ++index) task(context, index);
                  }};
#else
  return std::nullopt;
#endif
}

void expect_same_products(const Executor& executor) {
  const Device device = *Device::open("cpu", {.executor = executor});
  EXPECT_EQ(device.info().workers, executor.workers);
  for (const std::int64_t m : {1, 50}) {
    const GemmOperands operands({.d = kBf16, .m = m, .n = 500, .k = 512, .bias = true});
    OwnedMatrix expected, got;
    const GemmProblem on_pool = operands.problem(expected), injected = operands.problem(got);
    const auto* kernel = plan(on_pool, device)->kernel;
    ASSERT_TRUE(run_kernel(*kernel, on_pool, cpu_device()));
    ASSERT_TRUE(run_kernel(*kernel, injected, device));
    expect_same(expected, got);
  }
}

TEST(InjectedExecutor, one_tbb) {
  const auto executor = tbb_executor();
  if (!executor) GTEST_SKIP() << "built without oneTBB";
  expect_same_products(*executor);
}

TEST(InjectedExecutor, openmp) {
  const auto executor = openmp_executor();
  if (!executor) GTEST_SKIP() << "built without OpenMP";
  expect_same_products(*executor);
}

}  // namespace
}  // namespace finescale::test
