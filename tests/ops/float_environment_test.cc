// A host that flushes subnormals to zero, reads them as zero and rounds upwards gets the contract's numbers, and its own settings back.
#include "support/small_matrices.h"

#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>

#include <gtest/gtest.h>

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace finescale::test {
namespace {

// Sets what a host may have set, for its life.
class HostileHost {
 public:
  HostileHost() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    constexpr unsigned kFlushToZero = 0x8000, kSubnormalsAreZero = 0x0040;
    _mm_setcsr(_mm_getcsr() | kFlushToZero | kSubnormalsAreZero);
#endif
  }
  ~HostileHost() { std::fesetenv(&before_); }
  HostileHost(const HostileHost&) = delete;
  HostileHost& operator=(const HostileHost&) = delete;

  static bool still_set() {
    volatile float tiny = 0x1p-126f;
    volatile float half = tiny * 0.5f, third = 1.0f;
    third = third / 3.0f;
#if defined(__x86_64__)
    if (half != 0.0f) return false;
#endif
    return third == 0x1.555556p-2f;
  }

 private:
  std::fenv_t before_;
};

// Twice (1 + 2^-23) 2^-100 times 1.5 2^-40: subnormal, and the last bit falls to nearest.
struct TinyProduct {
  OwnedMatrix a = constant_matrix({.format = kF32, .rows = 3, .cols = 2}, 0x1.000002p-100f);
  OwnedMatrix b = constant_matrix({.format = kMxfp4, .rows = 5, .cols = 2}, 1.5f, 0x1p-40f);
  OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = 3, .cols = 5});
  GemmProblem problem{.a = a.view(), .b = b.view(), .d = d.view()};
};

TEST(FloatEnvironment, gemm_does_not_depend_on_the_host) {
  TinyProduct product;
  SweepReport report;
  for_each_kernel(product.problem, cpu_device(), report, [&](const Kernel<GemmProblem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const HostileHost host;
    ASSERT_TRUE(run_kernel(kernel, product.problem, cpu_device()));
    EXPECT_TRUE(HostileHost::still_set());
    for (std::int64_t n = 0; n < 5; ++n) EXPECT_EQ(float_bits(value_at(product.d, 0, 2, n)), float_bits(0x1.8p-139f)) << "column " << n;
  });
}

TEST(FloatEnvironment, grouped_gemm_does_not_depend_on_the_host) {
  TinyProduct product;
  const std::int32_t ends[] = {3};
  const GroupedGemmProblem problem{.gemm = product.problem, .routing = {.index = ends, .index_length = 1}};
  SweepReport report;
  for_each_kernel(problem, cpu_device(), report, [&](const Kernel<GroupedGemmProblem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const HostileHost host;
    ASSERT_TRUE(run_kernel(kernel, problem, cpu_device()));
    EXPECT_TRUE(HostileHost::still_set());
    for (std::int64_t n = 0; n < 5; ++n) EXPECT_EQ(float_bits(value_at(product.d, 0, 1, n)), float_bits(0x1.8p-139f)) << "column " << n;
  });
}

}  // namespace
}  // namespace finescale::test
