// finescale bench OP: the median time of kernels, and what share of this machine's roofline, measured on the spot, that is.
//
//   roofline = max(bytes / read rate, flops / FMA rate)     share = roofline / median time
#include "command.h"
#include "op_operands.h"
#include "op_options.h"
#include "op_problem.h"
#include "op_runner.h"
#include "op_work.h"
#include "printing.h"

#include "backends/cpu/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace finescale::tools {
namespace {

struct Options {
  OpOptions op;
  Output output;
  bool cold = false;
  std::int64_t cold_mib = 512;
  double seconds = 0.5;
  bool prepared_given = false;  // asked for: a device without a prepared layout is an error
};

struct BenchRow {
  std::string kernel;
  double seconds = 0, slowest = 0;  // median, and the 9th decile
  std::int64_t runs = 0;
  Work work;
  double roofline = 0;  // seconds; 0: not measured on this device
  bool memory_bound = true;

  double share() const { return seconds > 0 ? roofline / seconds : 0; }
};

// The operand that a run streams: the weights of a product, the input of a conversion.
Matrix& streamed(QuantizeProblem& problem) { return problem.from; }
Matrix& streamed(DequantizeProblem& problem) { return problem.from; }
Matrix& streamed(RepackProblem& problem) { return problem.from; }
Matrix& streamed(GemmProblem& problem) { return problem.b; }
Matrix& streamed(GroupedGemmProblem& problem) { return problem.gemm.b; }

// The problem once for each of enough copies of its streamed operand to fill the pool, so that no cache holds it.
template <class Problem>
Result<std::vector<Problem>> make_pool(const Problem& problem, std::int64_t pool_bytes, OperandStore& store) {
  std::vector<Problem> pool{problem};
  const Matrix original = streamed(pool[0]);
  const auto bytes = storage(original);
  FINESCALE_TRY(bytes);
  const auto host = store.download(original);
  FINESCALE_TRY(host);
  const std::int64_t each = bytes->data + bytes->scales;
  if (store.on_host()) FINESCALE_TRY(store.claim_host_memory(static_cast<double>(pool_bytes)));
  for (std::int64_t filled = each; each > 0 && filled < pool_bytes; filled += each) {
    const auto copy = store.upload(*host);
    FINESCALE_TRY(copy);
    pool.push_back(problem);
    streamed(pool.back()) = *copy;
  }
  return pool;
}

double quantile(std::vector<double> sorted, double share) {
  const auto index = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

// Times of single runs, over the pool in turn, for about `seconds`; sorted.
template <class Problem>
Result<std::vector<double>> time_runs(const OpRunner<Problem>& runner, const std::vector<Problem>& pool, const Device& device,
                                      double seconds) {
  constexpr std::size_t kFewest = 5, kMost = 100000;
  auto timer = DeviceTimer::create(device);
  FINESCALE_TRY(timer);
  FINESCALE_TRY(runner.run_to_end(pool[0]));
  std::vector<double> times;
  double total = 0;
  while (times.size() < kMost && (times.size() < kFewest || total < seconds || times.size() < pool.size())) {
    FINESCALE_TRY(timer->start(runner.stream()));
    FINESCALE_TRY(runner.enqueue(pool[(times.size() + 1) % pool.size()]));
    const auto milliseconds = timer->milliseconds(runner.stream());
    FINESCALE_TRY(milliseconds);
    times.push_back(*milliseconds * 1e-3);
    total += times.back();
    if (total > 20 * seconds) break;
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Only a CPU has yardsticks so far.
void set_roofline(const Options& options, const Device& device, BenchRow& row) {
  if (device.info().kind != DeviceKind::cpu) return;
  constexpr double kLargestBuffer = 512.0 * (1 << 20);
  const double buffer = options.cold ? static_cast<double>(options.cold_mib) * (1 << 20) : row.work.bytes;
  const std::int32_t threads = device.info().workers;
  const double memory = row.work.bytes / cpu::read_rate(static_cast<std::int64_t>(std::clamp(buffer, 4096.0, kLargestBuffer)), threads);
  const double compute = row.work.flops / cpu::fma_rate(threads);
  row.roofline = std::max(memory, compute);
  row.memory_bound = memory >= compute;
}

template <class Problem>
Result<BenchRow> bench_kernel(const Options& options, const Problem& host, const std::string& kernel, const Device& device) {
  OperandStore store(device);
  auto problem = on_device(host, store);
  FINESCALE_TRY(problem);
  if (options.op.prepared) FINESCALE_TRY(prepare_weights(*problem, store));
  forced_kernel(*problem) = kernel.c_str();
  const auto runner = OpRunner<Problem>::make(*problem, device);
  FINESCALE_TRY(runner);
  const auto pool = make_pool(*problem, options.cold ? options.cold_mib << 20 : 0, store);
  FINESCALE_TRY(pool);
  BenchRow row;
  row.kernel = kernel;
  row.work = work_of(host);
  set_roofline(options, device, row);
  const auto times = time_runs(*runner, *pool, device, options.seconds);
  FINESCALE_TRY(times);
  row.seconds = quantile(*times, 0.5);
  row.slowest = quantile(*times, 0.9);
  row.runs = static_cast<std::int64_t>(times->size());
  return row;
}

void print_rows(const Options& options, const Device& device, const std::vector<BenchRow>& rows, const std::vector<Explanation>& refused) {
  const std::string title = fmt::format("{} on {} ({}), {}", describe(options.op), device.name(), device.model(),
                                        options.cold ? fmt::format("cold over {} MiB", options.cold_mib) : "hot");
  if (options.output.json) {
    Json list = Json::array();
    for (const BenchRow& row : rows) {
      Json json{{"kernel", row.kernel},
                {"seconds", row.seconds},
                {"slow_seconds", row.slowest},
                {"runs", row.runs},
                {"gb_per_s", row.work.bytes / row.seconds * 1e-9},
                {"gflop_per_s", row.work.flops / row.seconds * 1e-9},
                {"roofline", nullptr},
                {"share", nullptr}};
      if (row.roofline > 0)
        json.update({{"roofline", row.roofline}, {"share", row.share()}, {"bound", row.memory_bound ? "memory" : "compute"}});
      list.push_back(json);
    }
    Json skipped = Json::array();
    for (const Explanation& row : refused) skipped.push_back({{"kernel", row.kernel}, {"why", row.sentence}});
    print_json("bench", list, {{"problem", title}, {"threads", device.info().workers}, {"skipped", skipped}});
    return;
  }
  if (options.output.quiet) return;
  fmt::print("{}\n", title);
  Table table({"kernel", ">median", ">90 %", ">runs", ">GB/s", ">GFLOP/s", ">roofline", ">share", "bound"});
  for (const BenchRow& row : rows) {
    const bool measured = row.roofline > 0;
    table.add({row.kernel, readable_seconds(row.seconds), readable_seconds(row.slowest), fmt::format("{}", row.runs),
               fmt::format("{:.2f}", row.work.bytes / row.seconds * 1e-9), fmt::format("{:.1f}", row.work.flops / row.seconds * 1e-9),
               measured ? readable_seconds(row.roofline) : "-", measured ? fmt::format("{:.0f} %", 100 * row.share()) : "-",
               measured ? (row.memory_bound ? "memory" : "compute") : "-"});
  }
  table.print();
  for (const Explanation& row : refused) fmt::print("skipped {}\n", row.sentence);
}

template <class Problem>
Exit bench_op(Options& options, const Device& device, const Problem& shape) {
  Problem tags = shape;
  if (const Status prepared = set_prepared_tags(options.op, device, tags); !prepared) {
    if (options.prepared_given || prepared.code != Code::unsupported) return fail(prepared);
    options.op.prepared = false;
    tags = shape;
  }
  const auto kernels = choose_kernels(tags, device, options.op.wants_all_kernels());
  if (!kernels) return fail(kernels.status());
  OperandStore store(device);
  Problem host = shape;
  if (const Status filled = fill_inputs(host, {options.op.seed, options.op.loaded.get(), true}, store); !filled) return fail(filled);
  std::vector<BenchRow> rows;
  Progress progress(!options.output.quiet);
  for (const std::string& kernel : kernels->names) {
    progress.show(kernel, static_cast<double>(rows.size()) / static_cast<double>(kernels->names.size()));
    auto row = bench_kernel(options, host, kernel, device);
    if (!row) return fail(row.status());
    rows.push_back(*std::move(row));
  }
  progress.clear();
  print_rows(options, device, rows, kernels->refused);
  return Exit::ok;
}

Exit run(const CLI::App& command, Options& options) {
  if (const Status status = finish_op_options(command, options.op); !status) return fail(status);
  options.prepared_given = command.count("--prepared") != 0;
  const auto device = open_device(options.op);
  if (!device) return fail(device.status());
  return visit_shape(options.op, [&](const auto& shape) { return bench_op(options, *device, shape); });
}

constexpr const char* kFooter = R"(Examples:
  finescale bench gemv --n 4096 --k 4096 --a bf16 --b nvfp4 --d bf16 --cold 512 --threads 1
  finescale bench gemm --m 256 --n 4096 --k 4096 --a bf16 --b nvfp4 --d bf16 --kernel all
  finescale bench grouped_gemm --m 256 --weights model-nvfp4.safetensors --module '*.attention.self.query'
  finescale bench quantize --m 4096 --k 4096 --a bf16 --d nvfp4 --json

The weights of a product are prepared first, as an engine would at load time; --in-place times them as they lie,
as do devices that have no prepared layout.
roofline is the time that this machine needs at least: the bytes of all operands at the measured rate of a loop that reads
memory, or the multiply-adds at the measured FP32 FMA rate, whichever takes longer. share = roofline / median.
Without --cold the same weights are read again and again, from a cache if they fit, and the read loop reads as many bytes;
with it the runs go round distinct matrices that fill so many MiB, and come from memory.
Operands are random and finite: zeros would run at other speeds.)";

}  // namespace

void add_bench(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("bench", "Time kernels against this machine's roofline");
  const auto options = std::make_shared<Options>();
  options->op.prepared = true;
  add_op_options(*command, options->op);
  constexpr std::int64_t kMostMib = std::int64_t{1} << 40;  // counted in bytes it still fits
  const auto set_cold = [options](const std::string& mib) {
    options->cold = true;
    const bool bare = mib.empty() || mib == "true";
    if (!bare && (!CLI::detail::lexical_cast(mib, options->cold_mib) || options->cold_mib <= 0 || options->cold_mib > kMostMib)) {
      throw CLI::ValidationError("--cold", fmt::format("\"{}\" is not a number of MiB", mib));
    }
  };
  command->add_option_function<std::string>("--cold", set_cold, "Go round distinct matrices of so many MiB together (512)")
      ->expected(0, 1)
      ->type_name("[MIB]")
      ->group("Bench");
  const CLI::Validator positive([](std::string& text) { return std::atof(text.c_str()) > 0 ? "" : "must be above 0"; }, "");
  command->add_option("--seconds", options->seconds, "How long to repeat each kernel (0.5)")->check(positive)->group("Bench");
  add_output_options(*command, options->output);
  command->footer(kFooter);
  command->callback([command, options, &exit] { exit = run(*command, *options); });
}

}  // namespace finescale::tools
