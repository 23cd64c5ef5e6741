#include "backends/cpu/executor.h"

#include "backends/cpu/machine.h"

#include <algorithm>
#include <system_error>

namespace finescale::cpu {
namespace {

// About 50 us of spinning before a worker parks: longer than the gap between the ops of a layer, shorter than a time slice.
constexpr int kSpins = 2000;

void run_alone(std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
  for (std::int32_t index = 0; index < tasks; ++index) task(context, index);
}

}  // namespace

ForkJoinPool::ForkJoinPool(std::int32_t workers) : helpers_(std::max(workers, 1) - 1), workers_(std::make_unique<Worker[]>(helpers_)) {
  for (std::int32_t i = 0; i < helpers_; ++i) {
    try {
      workers_[i].thread = std::thread([this, i] { serve(workers_[i]); });
    } catch (const std::system_error&) {
      helpers_ = i;
    }
  }
}

ForkJoinPool::~ForkJoinPool() {
  for (std::int32_t i = 0; i < helpers_; ++i) {
    workers_[i].state.store(kQuit, std::memory_order_release);
    workers_[i].state.notify_one();
  }
  for (std::int32_t i = 0; i < helpers_; ++i) workers_[i].thread.join();
}

void ForkJoinPool::take_tasks() {
  const Job job = job_;
  for (std::int32_t index = next_.fetch_add(1, std::memory_order_relaxed); index < job.tasks;
       index = next_.fetch_add(1, std::memory_order_relaxed)) {
    job.task(job.context, index);
  }
}

void ForkJoinPool::serve(Worker& worker) {
  for (;;) {
    for (int spin = 0; spin < kSpins && worker.state.load(std::memory_order_relaxed) == kIdle; ++spin) pause();
    worker.state.wait(kIdle, std::memory_order_relaxed);
    std::uint32_t posted = kPosted;
    if (worker.state.compare_exchange_strong(posted, kRunning, std::memory_order_acquire, std::memory_order_relaxed)) {
      take_tasks();
      worker.state.store(kIdle, std::memory_order_release);
    } else if (posted == kQuit) {
      return;
    }
  }
}

void ForkJoinPool::post(Worker& worker) {
  worker.state.store(kPosted, std::memory_order_release);
  worker.state.notify_one();  // a system call only where the worker is parked
}

void ForkJoinPool::run(std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
  if (tasks <= 1 || helpers_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return run_alone(tasks, task, context);
  job_ = {tasks, task, context};
  next_.store(0, std::memory_order_relaxed);
  const std::int32_t helpers = std::min(helpers_, tasks - 1);
  for (std::int32_t i = 0; i < helpers; ++i) post(workers_[i]);
  take_tasks();
  for (std::int32_t i = 0; i < helpers; ++i) {
    std::uint32_t posted = kPosted;
    if (workers_[i].state.compare_exchange_strong(posted, kIdle, std::memory_order_acquire)) continue;
    while (workers_[i].state.load(std::memory_order_acquire) == kRunning) pause();
  }
  busy_.store(false, std::memory_order_release);
}

Executor ForkJoinPool::executor() {
  return {helpers_ + 1, this, [](void* self, std::int32_t tasks, void (*task)(void*, std::int32_t), void* context) {
            static_cast<ForkJoinPool*>(self)->run(tasks, task, context);
          }};
}

}  // namespace finescale::cpu
