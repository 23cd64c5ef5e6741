// The library's own executor: a fork-join pool with one cache line a worker. Workers spin for a moment after a call, then
// park, so a warm call costs about a microsecond and an idle process costs nothing.
#pragma once

#include <finescale/device.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace finescale::cpu {

class ForkJoinPool {
 public:
  // `workers` >= 1 counts the caller of run(), which takes tasks too. Fewer where the system starts no more threads.
  explicit ForkJoinPool(std::int32_t workers);
  ~ForkJoinPool();
  ForkJoinPool(const ForkJoinPool&) = delete;
  ForkJoinPool& operator=(const ForkJoinPool&) = delete;

  // Runs task(context, 0 .. tasks - 1) and returns when all are done. A call from inside a task, or while another thread
  // is in run(), does its tasks alone, one after another.
  void run(std::int32_t tasks, void (*task)(void*, std::int32_t), void* context);

  Executor executor();

 private:
  struct Job {
    std::int32_t tasks = 0;
    void (*task)(void*, std::int32_t) = nullptr;
    void* context = nullptr;
  };
  // kIdle -> kPosted by run(); kPosted -> kRunning by the worker, or back to kIdle by run() when the worker came too late;
  // kRunning -> kIdle by the worker. A job is read only while kRunning, so it never outlives its run().
  enum State : std::uint32_t { kIdle, kPosted, kRunning, kQuit };
  struct alignas(64) Worker {
    std::atomic<std::uint32_t> state{kIdle};
    std::thread thread;
  };

  void serve(Worker& worker);
  void take_tasks();
  void post(Worker& worker);

  alignas(64) std::atomic<bool> busy_{false};
  Job job_;
  alignas(64) std::atomic<std::int32_t> next_{0};
  std::int32_t helpers_;
  std::unique_ptr<Worker[]> workers_;
};

}  // namespace finescale::cpu
