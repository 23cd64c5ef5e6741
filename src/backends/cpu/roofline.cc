#include "backends/cpu/roofline.h"

#include "backends/cpu/cpu_info.h"
#include "backends/cpu/executor.h"
#include "backends/cpu/kernels/roofline_loops.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

namespace finescale::cpu {
namespace {

constexpr int kBursts = 5;
constexpr std::int64_t kFmaSteps = 1 << 19;  // a few milliseconds

RooflineLoops loops() { return (detected_isa() & static_cast<std::uint64_t>(Isa::avx2)) != 0 ? avx2::kRoofline : portable::kRoofline; }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Work a second of body(0 .. threads - 1), all at once.
template <class Body>
double rate(ForkJoinPool& pool, std::int32_t threads, double work, const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  pool.run(
      threads, [](void* context, std::int32_t index) { (*static_cast<const Body*>(context))(index); }, const_cast<Body*>(&body));
  return work / seconds_since(start);
}

double read_once(ForkJoinPool& pool, std::span<const std::byte> memory, std::int32_t threads) {
  const RooflineLoops loop = loops();
  const auto bytes = static_cast<std::int64_t>(memory.size());
  return rate(pool, threads, static_cast<double>(bytes), [&](std::int32_t t) {
    const std::int64_t begin = bytes * t / threads / 64 * 64, end = bytes * (t + 1) / threads / 64 * 64;
    loop.read(memory.data() + begin, end - begin);
  });
}

}  // namespace

double read_rate(std::span<const std::byte> memory, std::int32_t threads) {
  ForkJoinPool pool(threads);
  return read_once(pool, memory, threads);
}

double read_rate(std::int64_t bytes, std::int32_t threads) {
  const std::vector<std::byte> memory(static_cast<std::size_t>(bytes), std::byte{1});
  ForkJoinPool pool(threads);
  std::vector<double> rates;
  for (int burst = 0; burst < kBursts; ++burst) rates.push_back(read_once(pool, memory, threads));
  return median(rates);
}

double fma_rate(std::int32_t threads) {
  const RooflineLoops loop = loops();
  ForkJoinPool pool(threads);
  std::vector<double> rates;
  for (int burst = 0; burst < kBursts; ++burst) {
    const double work = static_cast<double>(threads) * static_cast<double>(kFmaSteps) * loop.flops_per_step;
    rates.push_back(rate(pool, threads, work, [&](std::int32_t) { loop.fma(kFmaSteps); }));
  }
  return median(rates);
}

}  // namespace finescale::cpu
