// A host that flushes subnormals and rounds upward: kernels compute in the contract's mode all the same, in the calling thread
// and in every worker, and leave the host's mode as it was.
#include "cpu/gemm_case.h"

#include <xmmintrin.h>

#include <thread>
#include <vector>

namespace finescale::test {
namespace {

constexpr unsigned kHostile = 0x1F80 | 0x8000 | 0x0040 | 0x4000;  // FTZ, DAZ, round toward +infinity

class HostileMode {
 public:
  HostileMode() : saved_(_mm_getcsr()) { _mm_setcsr(kHostile); }
  ~HostileMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

// Worker threads of a host that sets its mode in each.
void hostile_team(void*, std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
  std::vector<std::thread> team;
  for (std::int32_t t = 0; t < 2; ++t) {
    team.emplace_back([=] {
      const HostileMode mode;
      for (std::int32_t i = t; i < tasks; i += 2) task(context, i);
      EXPECT_EQ(_mm_getcsr() & ~0x3Fu, kHostile);  // but for the sticky flags
    });
  }
  for (std::thread& thread : team) thread.join();
}

// Calls run(device, expect) under the usual mode, then under a hostile one with our pool and with a hostile team.
template <class Run>
void in_every_mode(const Run& run) {
  const Device usual = *Device::open("cpu", {.threads = 2});
  const OwnedMatrix expected = run(usual);
  const HostileMode mode;
  const Device pool = *Device::open("cpu", {.threads = 2}), team = *Device::open("cpu", {.executor = {2, nullptr, hostile_team}});
  for (const Device* device : {&pool, &team}) {
    const OwnedMatrix got = run(*device);
    EXPECT_EQ(_mm_getcsr() & ~0x3Fu, kHostile);
    _mm_setcsr(0x1F80);
    expect_same(expected, got);
    _mm_setcsr(kHostile);
  }
}

// A of 2^-120 and thirds: products and sums are subnormal, and many round.
OwnedMatrix tiny_rows(std::int64_t rows, std::int64_t cols) {
  OwnedMatrix matrix = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = cols});
  for (std::int64_t i = 0; i < rows * cols; ++i)
    reinterpret_cast<float*>(matrix.view().data)[i] = 0x1p-127f * static_cast<float>(i % 37 + 1) / 3.0f;
  return matrix;
}

TEST(FloatMode, products_do_not_see_the_host) {
  const OwnedMatrix a = tiny_rows(40, 96);
  for (const bool prepared : {true, false}) {
    const GemmOperands operands({.a = kF32, .m = 40, .n = 64, .k = 96, .prepared = prepared});
    for (const std::int64_t rows : {1, 40}) {
      for (const auto* kernel : cpu_rows<GemmProblem>()) {
        OwnedMatrix unused;
        GemmProblem problem = operands.problem(unused);
        problem.a = a.view();
        problem.a.rows = problem.d.rows = rows;
        if (refuse(*kernel, with_strides(problem), cpu_device().info())) continue;
        in_every_mode([&](const Device& device) {
          OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = 64});
          problem.d = d.view();
          EXPECT_TRUE(run_kernel(*kernel, problem, device));
          return d;
        });
      }
    }
  }
}

TEST(FloatMode, quantizers_do_not_see_the_host) {
  const OwnedMatrix from = tiny_rows(300, 256);
  for (const Format& format : {kNvfp4, kMxfp8E5m2, kFp8E4m3Row128}) {
    for (const auto* kernel : cpu_rows<QuantizeProblem>()) {
      const QuantizeProblem tags{.from = from.view(), .to = {.format = format, .rows = 300, .cols = 256}};
      if (refuse(*kernel, with_strides(tags), cpu_device().info())) continue;
      in_every_mode([&](const Device& device) {
        OwnedMatrix to = *OwnedMatrix::make({.format = format, .rows = 300, .cols = 256});
        EXPECT_TRUE(run_kernel(*kernel, {.from = from.view(), .to = to.view()}, device));
        return to;
      });
    }
  }
}

TEST(FloatMode, dequantizing_does_not_see_the_host) {
  OwnedMatrix from = *random_matrix({.format = kNvfp4, .rows = 40, .cols = 96, .global_kind = GlobalScale::one}, 5);
  *from.view().global = 0x1p-128f / 3.0f;
  for (const auto* kernel : cpu_rows<DequantizeProblem>()) {
    in_every_mode([&](const Device& device) {
      OwnedMatrix to = *OwnedMatrix::make({.format = kF32, .rows = 40, .cols = 96});
      EXPECT_TRUE(run_kernel(*kernel, {.from = from.view(), .to = to.view()}, device));
      return to;
    });
  }
}

}  // namespace
}  // namespace finescale::test
