// nvfp4 weights times plain activations on the CPU, as shares of what the machine can do:
//
//   GEMV  4096 x 4096 over a pool of 512 MB of distinct prepared matrices, of the rate at which a plain loop reads the pool
//   GEMM  M = 16, 64, 256, N = K = 4096, of the rate of an FMA loop
//   both  of the reference's rate, and the flags that it was compiled with
//
// cpu_gemm [--threads N] [--rounds N] [--json FILE]
#include "alternating.h"
#include "backends/cpu/roofline.h"
#include "check/operands.h"
#include "ops/registry.h"

#include <finescale/gemm.h>
#include <finescale/prepare.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace finescale::bench {
namespace {

constexpr std::int64_t kSize = 4096, kPoolBytes = std::int64_t{512} << 20, kMatricesPerBurst = 4;

struct Options {
  int threads = 1, rounds = 9;
  std::string json;
};

template <class T>
T need(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.status().sentence);
    std::exit(1);
  }
  return std::move(*result);
}

// Memory on 2 MiB pages: with small ones the page walk, not the kernel, is measured.
std::byte* huge(std::int64_t bytes) {
  constexpr std::int64_t kPage = 2 << 20;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, static_cast<std::size_t>((bytes + kPage - 1) / kPage * kPage)));
  madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), device_(need(Device::open("cpu", {.threads = options.threads}))) {
    const OwnedMatrix plain = need(random_matrix({.format = kNvfp4, .rows = kSize, .cols = kSize, .global_kind = GlobalScale::one}, 1));
    weights_ = need(prepared_like(plain.view(), device_));
    bytes_ = need(storage(weights_)).data;
    copies_ = (kPoolBytes + bytes_ - 1) / bytes_;
    pool_ = huge(copies_ * bytes_);
    weights_.data = pool_;
    const Status status = prepare({.from = plain.view(), .to = weights_}, Execution{.device = &device_});
    if (!status) fmt::print(stderr, "{}\n", status.sentence);
    global_ = *plain.view().global;
    weights_.global = &global_;
    for (std::int64_t copy = 1; copy < copies_; ++copy) std::memcpy(pool_ + copy * bytes_, pool_, static_cast<std::size_t>(bytes_));
  }

  void run() {
    fmt::print("{}, {} thread(s)\n", device_.model(), options_.threads);
    const double reference = reference_rate();
    reference_ = {{"gflop_per_s", reference / 1e9}, {"flags", FINESCALE_BENCHMARK_FLAGS}};
    fmt::print("gemm_reference: {:.3f} GFLOP/s, compiled with {}\n", reference / 1e9, FINESCALE_BENCHMARK_FLAGS);
    for (const Format& a : {kBf16, kF32}) {
      for (const std::int64_t m : {1, 2, 4}) gemv(a, m, reference);
      for (const std::int64_t m : {8, 16, 64, 256}) gemm(a, m, reference);
    }
  }

  void save() const {
    if (options_.json.empty()) return;
    const nlohmann::json report = {{"schema", "finescale.benchmark.1"},
                                   {"device", device_.model()},
                                   {"threads", options_.threads},
                                   {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                                   {"command", fmt::format("cpu_gemm --threads {} --rounds {}", options_.threads, options_.rounds)},
                                   {"reference", reference_},
                                   {"rows", rows_}};
    std::ofstream(options_.json) << report.dump(2) << "\n";
  }

 private:
  struct Problem {
    OwnedMatrix a, d;
    GemmProblem gemm;
    Plan<GemmProblem> plan;
  };

  Problem problem(const Format& a, std::int64_t m, std::int64_t n, const char* kernel) {
    Problem made;
    made.a = need(random_matrix({.format = a, .rows = m, .cols = kSize}, 2));
    made.d = need(OwnedMatrix::make({.format = kBf16, .rows = m, .cols = n}));
    made.gemm = {.a = made.a.view(), .b = weights_, .d = made.d.view(), .kernel = kernel};
    made.gemm.b.rows = n;
    made.plan = need(plan(made.gemm, device_));
    if (scratch_.bytes() < made.plan.choice.scratch_bytes) scratch_ = GuardedBuffer(made.plan.choice.scratch_bytes);
    return made;
  }

  void multiply(const Problem& made, std::int64_t copy) {
    GemmProblem gemm = made.gemm;
    gemm.b.data = pool_ + copy * bytes_;
    const Status status =
        finescale::run(made.plan, gemm, {.device = &device_, .workspace = {.scratch = scratch_.data(), .scratch_bytes = scratch_.bytes()}});
    if (!status) fmt::print(stderr, "{}\n", status.sentence);
  }

  template <class Body>
  double timed(const Body& body) const {
    return seconds(options_.threads == 1 ? Clock::thread_cpu : Clock::wall, body);
  }

  // FLOP/s of the reference on a piece of the problem: its work a product does not depend on the shape. The library's own
  // reference, under the flags of this build; one of -O2 comes from a RelWithDebInfo build.
  double reference_rate() {
    const Problem made = problem(kBf16, 2, 128, "gemm_reference");
    std::vector<double> rates;
    for (int round = 0; round < options_.rounds; ++round) rates.push_back(2.0 * 2 * 128 * kSize / timed([&] { multiply(made, 0); }));
    return median(rates);
  }

  // Both bursts take the next matrices of the pool, so each finds them in DRAM.
  void gemv(const Format& a, std::int64_t m, double reference) {
    const Problem made = problem(a, m, kSize, nullptr);
    std::int64_t next = 0;
    const double burst_bytes = static_cast<double>(kMatricesPerBurst * bytes_);
    const auto take = [&] {
      const std::int64_t first = next;
      next = (next + kMatricesPerBurst) % (copies_ / kMatricesPerBurst * kMatricesPerBurst);
      return first;
    };
    const auto shares = alternate(
        4 * options_.rounds,
        [&] {
          const std::int64_t first = take();
          return burst_bytes / timed([&] {
                   for (std::int64_t i = 0; i < kMatricesPerBurst; ++i) multiply(made, first + i);
                 });
        },
        [&] {
          const std::span<const std::byte> next_matrices(pool_ + take() * bytes_, static_cast<std::size_t>(kMatricesPerBurst * bytes_));
          return burst_bytes / timed([&] { cpu::read_rate(next_matrices, options_.threads); });
        });
    report(made, a, m, "read", shares, shares.rate,
           shares.rate / static_cast<double>(bytes_) * 2.0 * static_cast<double>(m * kSize * kSize), reference);
  }

  void gemm(const Format& a, std::int64_t m, double reference) {
    const Problem made = problem(a, m, kSize, nullptr);
    const double flops = 2.0 * static_cast<double>(m * kSize * kSize);
    const auto shares = alternate(
        options_.rounds, [&] { return flops / timed([&] { multiply(made, 0); }); }, [&] { return cpu::fma_rate(options_.threads); });
    report(made, a, m, "fma", shares, shares.rate / flops * static_cast<double>(bytes_), shares.rate, reference);
  }

  void report(const Problem& made, const Format& a, std::int64_t m, const char* limit, const Shares& shares, double bytes, double flops,
              double reference) {
    fmt::print("{:28} {:5} M={:<4} {:7.2f} GB/s {:8.2f} GFLOP/s  {:.3f} of {} limit {:.2f}e9/s ({:.3f}-{:.3f}), {:.0f}x the reference\n",
               made.plan.kernel->name, format_name(a), m, bytes / 1e9, flops / 1e9, shares.share, limit, shares.limit / 1e9, shares.low,
               shares.high, flops / reference);
    rows_.push_back({{"kernel", made.plan.kernel->name},
                     {"a", format_name(a)},
                     {"b", "nvfp4"},
                     {"m", m},
                     {"n", kSize},
                     {"k", kSize},
                     {"gb_per_s", bytes / 1e9},
                     {"gflop_per_s", flops / 1e9},
                     {"roofline", limit},
                     {"limit", shares.limit / 1e9},
                     {"share", shares.share},
                     {"share_low", shares.low},
                     {"share_high", shares.high},
                     {"times_reference", flops / reference}});
  }

  Options options_;
  Device device_;
  MutableMatrix weights_;
  float global_ = 1.0f;
  std::byte* pool_ = nullptr;
  std::int64_t bytes_ = 0, copies_ = 0;
  GuardedBuffer scratch_;
  nlohmann::json reference_, rows_ = nlohmann::json::array();
};

}  // namespace
}  // namespace finescale::bench

int main(int argc, char** argv) {
  finescale::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--threads") options.threads = std::atoi(argv[i + 1]);
    if (name == "--rounds") options.rounds = std::atoi(argv[i + 1]);
    if (name == "--json") options.json = argv[i + 1];
  }
  finescale::bench::Bench bench(options);
  bench.run();
  bench.save();
}
