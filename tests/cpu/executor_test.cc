// The fork-join pool: every task once, whoever calls and however often.
#include "backends/cpu/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace finescale::cpu {
namespace {

template <class Body>
void run(ForkJoinPool& pool, std::int32_t tasks, Body body) {
  pool.run(
      tasks, [](void* context, std::int32_t index) { (*static_cast<Body*>(context))(index); }, &body);
}

// How often each task ran.
std::vector<int> counts(ForkJoinPool& pool, std::int32_t tasks) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(tasks));
  run(pool, tasks, [&](std::int32_t index) { seen[static_cast<std::size_t>(index)].fetch_add(1); });
  return {seen.begin(), seen.end()};
}

TEST(ForkJoinPool, runs_every_task_once) {
  for (const std::int32_t workers : {1, 2, 3, 8}) {
    ForkJoinPool pool(workers);
    EXPECT_EQ(pool.executor().workers, workers);
    for (const std::int32_t tasks : {0, 1, 2, 7, 1000})
      EXPECT_EQ(counts(pool, tasks), std::vector<int>(static_cast<std::size_t>(tasks), 1));
  }
}

TEST(ForkJoinPool, sees_the_writes_of_every_task_after_thousands_of_calls) {
  ForkJoinPool pool(3);
  std::vector<std::int64_t> sums(5);
  for (int call = 0; call < 5000; ++call) run(pool, 5, [&](std::int32_t index) { sums[static_cast<std::size_t>(index)] += index; });
  EXPECT_EQ(sums, (std::vector<std::int64_t>{0, 5000, 10000, 15000, 20000}));
}

TEST(ForkJoinPool, wakes_workers_that_have_parked) {
  ForkJoinPool pool(3);
  for (int call = 0; call < 3; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(counts(pool, 64), std::vector<int>(64, 1));
  }
}

TEST(ForkJoinPool, hands_tasks_to_other_threads) {
  ForkJoinPool pool(2);
  std::atomic<int> arrived{0};
  // Two tasks that wait for each other can only end on two threads. (Kernels never do this.)
  run(pool, 2, [&](std::int32_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(ForkJoinPool, runs_a_call_from_inside_a_task) {
  ForkJoinPool pool(3);
  std::atomic<int> inner{0};
  run(pool, 4, [&](std::int32_t) { run(pool, 10, [&](std::int32_t) { inner.fetch_add(1); }); });
  EXPECT_EQ(inner.load(), 40);
}

TEST(ForkJoinPool, serves_callers_on_several_threads_at_once) {
  ForkJoinPool pool(3);
  std::atomic<int> ran{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int call = 0; call < 500; ++call) run(pool, 6, [&](std::int32_t) { ran.fetch_add(1); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ran.load(), 4 * 500 * 6);
}

TEST(ForkJoinPool, ends_right_after_it_began) {
  for (int i = 0; i < 50; ++i) ForkJoinPool pool(4);
}

}  // namespace
}  // namespace finescale::cpu
