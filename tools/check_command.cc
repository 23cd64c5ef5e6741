// finescale check OP: runs kernels on seeded operands and judges every output. Products go before the exact oracle,
// conversions are compared byte for byte with the reference.
#include "check_tensors.h"
#include "choice_option.h"
#include "command.h"
#include "fault.h"
#include "op_operands.h"
#include "op_options.h"
#include "op_problem.h"
#include "op_runner.h"
#include "printing.h"
#include "verdict.h"
#include "verdict_output.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace finescale::tools {
namespace {

struct Options {
  OpOptions op;
  Output output;
  FaultKind inject = FaultKind::none;
  std::string tensors;
  bool alpha_given = false;
};

const NamedValues<FaultKind> kFaults{{"scale", FaultKind::scale}, {"code", FaultKind::code}, {"tile", FaultKind::tile}};

template <class Problem>
constexpr bool kIsProduct = std::is_same_v<Problem, GemmProblem> || std::is_same_v<Problem, GroupedGemmProblem>;

std::int64_t groups_stored(const OpOptions& options) { return options.op == Op::grouped_gemm ? options.groups : 1; }

// One run of a kernel on operands of its own.
template <class Problem>
struct KernelRun {
  OperandStore store;
  Problem problem;  // on the device
  std::optional<OpRunner<Problem>> runner;
};

template <class Problem>
Result<Matrix> run_kernel(const Options& options, const Problem& host, const std::string& kernel, KernelRun<Problem>& run) {
  auto problem = on_device(host, run.store);
  FINESCALE_TRY(problem);
  run.problem = *problem;
  if (options.op.prepared) FINESCALE_TRY(prepare_weights(run.problem, run.store));
  forced_kernel(run.problem) = kernel.c_str();
  auto runner = OpRunner<Problem>::make(run.problem, run.store.device());
  FINESCALE_TRY(runner);
  run.runner = *std::move(runner);
  FINESCALE_TRY(run.runner->run_to_end(run.problem));
  return run.store.download(output_of(run.problem), groups_stored(options.op));
}

// Plants the fault that was asked for, runs again where it lies in an operand, and returns what the kernel made of it.
template <class Problem>
Result<Matrix> run_with_fault(const Options& options, const Problem& host, const std::string& kernel, const Matrix& clean,
                              const Accumulation& accumulation, KernelRun<Problem>& run, std::string& fault) {
  if constexpr (kIsProduct<Problem>) {
    Problem faulty = host;
    auto planted = plant_fault(options.inject, host, accumulation, clean, options.op.seed, run.store, faulty);
    FINESCALE_TRY(planted);
    fault = *planted;
    return run_kernel(options, faulty, kernel, run);
  } else {
    MutableMatrix output = output_of(run.problem);
    output.data = const_cast<std::byte*>(clean.data);
    output.scales = const_cast<std::byte*>(clean.scales);
    output.global = const_cast<float*>(clean.global);
    auto planted = plant_in_output(options.inject, output, options.op.seed);
    FINESCALE_TRY(planted);
    fault = *planted;
    return Matrix(output);
  }
}

template <class Problem>
Result<VerdictRow> check_kernel(const Options& options, const Problem& host, const std::string& kernel, const Device& device) {
  KernelRun<Problem> run{OperandStore(device), {}, {}};
  VerdictRow row;
  row.kernel = kernel;
  auto observed = run_kernel(options, host, kernel, run);
  FINESCALE_TRY(observed);
  const Accumulation accumulation = run.runner->accumulation(run.problem);
  if (options.inject != FaultKind::none) {
    observed = run_with_fault(options, host, kernel, *observed, accumulation, run, row.fault);
    FINESCALE_TRY(observed);
  }
  auto verdict = judge(host, *observed, accumulation, {.seed = options.op.seed});
  FINESCALE_TRY(verdict);
  row.verdict = *verdict;
  if (!run.store.guards_intact()) {
    row.verdict.ok = false;
    row.fault = "the kernel wrote outside its output";
  }
  return row;
}

template <class Problem>
Exit check_op(const Options& options, const Device& device, const Problem& shape) {
  Problem tags = shape;
  if (const Status prepared = set_prepared_tags(options.op, device, tags); !prepared) return fail(prepared);
  const auto kernels = choose_kernels(tags, device, options.op.wants_all_kernels());
  if (!kernels) return fail(kernels.status());
  OperandStore store(device);
  Problem host = shape;
  if (const Status filled = fill_inputs(host, {options.op.seed, options.op.loaded.get(), !options.alpha_given}, store); !filled)
    return fail(filled);
  std::vector<VerdictRow> rows;
  Progress progress(!options.output.quiet);
  for (const std::string& kernel : kernels->names) {
    progress.show(kernel, static_cast<double>(rows.size()) / static_cast<double>(kernels->names.size()));
    auto row = check_kernel(options, host, kernel, device);
    if (!row) return fail(row.status());
    rows.push_back(*std::move(row));
  }
  progress.clear();
  print_verdicts(describe(options.op) + " on " + device.name(), kIsProduct<Problem>, rows, kernels->refused, options.output);
  return exit_for_verdicts(rows);
}

Exit run(const CLI::App& command, Options& options) {
  options.alpha_given = command.count("--alpha") != 0;
  if (!options.tensors.empty()) return check_tensors(command, options.op, options.tensors, options.output);
  if (const Status status = finish_op_options(command, options.op); !status) return fail(status);
  const auto device = open_device(options.op);
  if (!device) return fail(device.status());
  return visit_shape(options.op, [&](const auto& shape) { return check_op(options, *device, shape); });
}

constexpr const char* kFooter = R"(Examples:
  finescale check gemm --m 256 --n 1024 --k 1024 --a bf16 --b nvfp4 --d bf16 --kernel all
  finescale check grouped_gemm --m 64 --n 96 --k 256 --groups 8 --routing row_groups --bias --act silu
  finescale check quantize --m 128 --k 4096 --a bf16 --d nvfp4 --scale-layout scale_128x4
  finescale check gemm --m 256 --weights model-nvfp4.safetensors --module '*.layer.0.*.query'
  finescale check gemm --m 33 --n 65 --k 256 --inject scale             must find it, and exit with 1
  finescale check gemm --a bf16 --b nvfp4 --d bf16 --tensors their.safetensors

worst is the largest error of a product in units of the bound that the kernel's order of additions allows: 1.0 is at the
bound, more is wrong. Conversions are compared with the reference: worst counts the codes and scales that differ.
Operands are seeded; unless --alpha is given, it is the power of two that brings D near 1. Products of more than 2^28
multiply-adds are judged by a seeded sample that holds every tile edge; the share that was checked is printed.

--tensors FILE judges a product that was made elsewhere: the tensors a, b and d of a safetensors file, with a_scale, a_global,
b_scale, b_global, d_scale, d_global, bias and residual where there are any, in the formats and the scale layout that the
options name.)";

}  // namespace

void add_check(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("check", "Run kernels, and prove that every output is right");
  const auto options = std::make_shared<Options>();
  add_op_options(*command, options->op);
  add_choice(*command, "--inject", options->inject, kFaults, "Plant one fault, which must be found")->group("Check");
  command->add_option("--tensors", options->tensors, "Judge the product that this safetensors file holds")
      ->type_name("FILE")
      ->group("Check");
  add_output_options(*command, options->output);
  command->footer(kFooter);
  command->callback([command, options, &exit] { exit = run(*command, *options); });
}

}  // namespace finescale::tools
