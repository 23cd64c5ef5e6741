// Bits do not depend on how many threads there are, in which order tasks run, or how the host's floating point is set; under
// batch_invariant neither on the other rows.
#include "cpu/gemm_case.h"

#include <finescale/access.h>

#include <cstring>
#include <thread>
#include <vector>

namespace finescale::test {
namespace {

using Task = void (*)(void*, std::int32_t);

// Executors that differ in everything that an executor may choose.
void backwards(void*, std::int32_t tasks, Task task, void* context) {
  for (std::int32_t i = tasks; i-- > 0;) task(context, i);
}
void interleaved(void* self, std::int32_t tasks, Task task, void* context) {
  const std::int32_t threads = static_cast<Executor*>(self)->workers;
  std::vector<std::thread> team;
  for (std::int32_t t = 0; t < threads; ++t) {
    team.emplace_back([=] {
      for (std::int32_t i = t; i < tasks; i += threads) task(context, i);
    });
  }
  for (std::thread& thread : team) thread.join();
}

std::vector<Device> devices() {
  static Executor reversed{1, nullptr, backwards}, three{3, nullptr, interleaved};
  three.self = &three;
  std::vector<Device> list;
  for (const std::int32_t threads : {1, 2, 3, 7}) list.push_back(*Device::open("cpu", {.threads = threads}));
  list.push_back(*Device::open("cpu", {.executor = reversed}));
  list.push_back(*Device::open("cpu", {.executor = three}));
  return list;
}

TEST(CpuBits, do_not_depend_on_threads_or_task_order) {
  const auto all = devices();
  for (const Format& d_format : {kF32, kNvfp4, kFp8E4m3Block128}) {
    for (const std::int64_t m : {1, 5, 200}) {
      const GemmOperands operands({.d = d_format,
                                   .batch = 2,
                                   .m = m,
                                   .n = 150,
                                   .k = 300,
                                   .gate = Gate::halves_up_first,
                                   .activation = Activation::silu,
                                   .bias = true});
      for (const auto* kernel : cpu_rows<GemmProblem>()) {
        OwnedMatrix first;
        const GemmProblem on_one = operands.problem(first);
        if (refuse(*kernel, with_strides(on_one), all[0].info())) continue;
        ASSERT_TRUE(run_kernel(*kernel, on_one, all[0]));
        for (std::size_t i = 1; i < all.size(); ++i) {
          OwnedMatrix other;
          ASSERT_TRUE(run_kernel(*kernel, operands.problem(other), all[i]));
          expect_same(first, other);
        }
      }
    }
  }
}

TEST(CpuBits, quantizing_does_not_depend_on_threads_or_task_order) {
  const auto all = devices();
  const OwnedMatrix from = *random_matrix({.format = kBf16, .batch = 2, .rows = 130, .cols = 3001}, 3, Values::wide);
  for (const Format& format : {kNvfp4, kMxfp8E4m3, kFp8E4m3Block128, kFp4Tensor}) {
    for (const auto* kernel : cpu_rows<QuantizeProblem>()) {
      Matrix tags{.format = format, .batch = 2, .rows = 130, .cols = 3001};
      if (format.global) tags.global_kind = GlobalScale::one;
      OwnedMatrix first = *OwnedMatrix::make(tags);
      const QuantizeProblem on_one{.from = from.view(), .to = first.view()};
      if (refuse(*kernel, with_strides(on_one), all[0].info())) continue;
      ASSERT_TRUE(run_kernel(*kernel, on_one, all[0]));
      for (std::size_t i = 1; i < all.size(); ++i) {
        OwnedMatrix other = *OwnedMatrix::make(tags);
        ASSERT_TRUE(run_kernel(*kernel, {.from = from.view(), .to = other.view()}, all[i]));
        expect_same(first, other);
      }
    }
  }
}

// Row m of the product of the first `rows` rows of A.
std::vector<float> row_of(const Kernel<GemmProblem>& kernel, GemmProblem problem, std::int64_t rows, std::int64_t m) {
  problem.a.rows = rows;
  OwnedMatrix d = *OwnedMatrix::make({.format = kF32, .rows = rows, .cols = problem.b.rows});
  problem.d = d.view();
  EXPECT_TRUE(run_kernel(kernel, problem, cpu_device()));
  std::vector<float> row(static_cast<std::size_t>(problem.d.cols));
  std::memcpy(row.data(), problem.d.data + m * problem.d.cols * 4, row.size() * 4);
  return row;
}

TEST(CpuBits, batch_invariant_rows_do_not_depend_on_m) {
  const GemmOperands operands({.m = 200, .n = 33, .k = 1000});
  OwnedMatrix unused;
  GemmProblem problem = operands.problem(unused);
  problem.batch_invariant = true;
  for (const auto* kernel : cpu_rows<GemmProblem>()) {
    if (refuse(*kernel, with_strides(problem), cpu_device().info())) continue;
    const auto alone = row_of(*kernel, problem, 1, 0);
    for (const std::int64_t rows : {2, 5, 6, 7, 13, 200})
      EXPECT_EQ(row_of(*kernel, problem, rows, 0), alone) << kernel->name << ", M = " << rows;
  }
}

// Which of two NaNs a sum keeps depends on how its instructions are ordered, so it may not show.
TEST(CpuBits, a_nan_has_one_form) {
  const GemmOperands operands({.a = kF32, .b = kMxfp8E5m2, .m = 7, .n = 21, .k = 64});
  const OwnedMatrix a = *random_matrix({.format = kF32, .rows = 7, .cols = 64}, 5);
  for (std::int64_t row = 0; row < 7; ++row) set_code(with_strides(a.view()), 0, row, row, row % 2 == 0 ? 0xFFE12345u : 0x7FC00001u);
  for (const auto* kernel : cpu_rows<GemmProblem>()) {
    OwnedMatrix d;
    GemmProblem problem = operands.problem(d);
    problem.a = a.view();
    if (refuse(*kernel, with_strides(problem), cpu_device().info())) continue;
    ASSERT_TRUE(run_kernel(*kernel, problem, cpu_device()));
    for (std::int64_t row = 0; row < 7; ++row) {
      for (std::int64_t col = 0; col < 21; ++col) {
        EXPECT_EQ(code_at(with_strides(Matrix(d.view())), 0, row, col), 0x7FC00000u) << kernel->name;
      }
    }
  }
}

TEST(CpuBits, rows_of_one_order_have_equal_bits_for_prepared_and_plain_weights) {
  for (const Format& b : {kNvfp4, kMxfp8E5m2, kFp8E4m3Row128}) {
    const GemmOperands prepared({.b = b, .m = 9, .n = 40, .k = 600}), plain({.b = b, .m = 9, .n = 40, .k = 600, .prepared = false});
    for (const auto* kernel : cpu_rows<GemmProblem>()) {
      OwnedMatrix x, y;
      const GemmProblem of_prepared = prepared.problem(x), of_plain = plain.problem(y);
      if (refuse(*kernel, with_strides(of_plain), cpu_device().info())) continue;
      ASSERT_TRUE(run_kernel(*kernel, of_prepared, cpu_device()));
      ASSERT_TRUE(run_kernel(*kernel, of_plain, cpu_device()));
      expect_same(x, y);
    }
  }
}

}  // namespace
}  // namespace finescale::test
