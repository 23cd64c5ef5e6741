#include "op_options.h"

#include "choice_option.h"
#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace finescale::tools {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;  // of one dimension: sums and doubles of sizes stay in range

const NamedValues<Op> kOps{{"quantize", Op::quantize}, {"dequantize", Op::dequantize},    {"repack", Op::repack}, {"gemm", Op::gemm},
                           {"gemv", Op::gemv},         {"grouped_gemm", Op::grouped_gemm}};
const NamedValues<Routing::Kind> kRoutings{{"row_groups", Routing::Kind::row_groups},
                                           {"end_offsets", Routing::Kind::end_offsets},
                                           {"offsets_from_zero", Routing::Kind::offsets_from_zero},
                                           {"counts", Routing::Kind::counts}};
const NamedValues<ScaleLayout> kScaleLayouts{{"linear", ScaleLayout::linear},
                                             {"scale_128x4", ScaleLayout::scale_128x4},
                                             {"scale_8x4", ScaleLayout::scale_8x4},
                                             {"scale_128x4_per_group", ScaleLayout::scale_128x4_per_group}};
const NamedValues<Activation> kActivations{{"none", Activation::none},         {"gelu_tanh", Activation::gelu_tanh},
                                           {"gelu_erf", Activation::gelu_erf}, {"silu", Activation::silu},
                                           {"relu", Activation::relu},         {"relu2", Activation::relu2}};
const NamedValues<Gate> kGates{{"none", Gate::none},
                               {"halves_gate_first", Gate::halves_gate_first},
                               {"halves_up_first", Gate::halves_up_first},
                               {"alternating_rows", Gate::alternating_rows},
                               {"second_matrix", Gate::second_matrix}};
const NamedValues<Producer> kProducers{{"none", Producer::none},
                                       {"silu_mul", Producer::silu_mul},
                                       {"gelu_tanh_mul", Producer::gelu_tanh_mul},
                                       {"gelu_erf_mul", Producer::gelu_erf_mul},
                                       {"gelu_tanh", Producer::gelu_tanh},
                                       {"gelu_erf", Producer::gelu_erf},
                                       {"rms_norm", Producer::rms_norm}};
const NamedValues<ScaleSearch> kSearches{{"max", ScaleSearch::max}, {"four_six", ScaleSearch::four_six}, {"mse", ScaleSearch::mse}};
const NamedValues<Format> kPlainFormats{{"f32", kF32}, {"f16", kF16}, {"bf16", kBf16}};

NamedValues<Format> all_formats() {
  NamedValues<Format> formats;
  for (const NamedFormat& row : kFormats) formats.push_back({row.name, row.format});
  return formats;
}

std::string block_format_list() {
  std::string text = "Format of B (nvfp4), a block format:";
  for (const NamedFormat& row : kFormats) {
    if (!row.format.is_plain()) text += fmt::format(" {}", row.name);
  }
  return text;
}

NamedValues<CodeLayout> code_layouts() {
  NamedValues<CodeLayout> layouts{{"row_major", CodeLayout::row_major}, {"high_nibble_first", CodeLayout::high_nibble_first}};
  PreparedLayouts::for_each([&](auto layout) { layouts.push_back({layout.kName, static_cast<CodeLayout>(layout.kId)}); });
  return layouts;
}

NamedValues<Profile> profiles() {
  NamedValues<Profile> list;
  for (const NamedProfile& row : kProfiles) list.push_back({row.name, row.profile});
  return list;
}

// A plain operand that is there when its flag is given, in f32 or in the format that follows.
void add_plain_operand(CLI::App& command, const std::string& flag, Format& format, const std::string& help) {
  const auto assign = [flag, &format](const std::string& name) {
    const bool bare = name.empty() || name == "true";
    format = bare ? kF32 : parse_choice(flag, name, kPlainFormats);
  };
  command.add_option_function<std::string>(flag, assign, help)->expected(0, 1)->type_name("[f32|f16|bf16]")->group("Epilogue");
}

void add_sizes(CLI::App& command, OpOptions& options) {
  const CLI::Validator in_range(
      [](std::string& text) {
        std::int64_t number = -1;
        const bool read = CLI::detail::lexical_cast(text, number);
        return read && number >= 0 && number <= kMaxSize ? "" : fmt::format("{} is no number from 0 to {}", text, kMaxSize);
      },
      "");
  const auto size = [&](const char* flag, std::int64_t& value, const char* help) {
    command.add_option(flag, value, help)->check(in_range)->type_name("COUNT")->group("Problem");
  };
  size("--m", options.m, "Rows of A and D: activations; gemv: 1. Grouped: all rows; counts: padded rows of each group");
  size("--n", options.n, "Columns of D: rows of B, the weights (gated: B has 2N)");
  size("--k", options.k, "Columns of A and B");
  size("--batch", options.batch, "Batches (1)");
  size("--groups", options.groups, "grouped_gemm: matrices of B (4)");
  size("--tokens", options.tokens, "grouped_gemm: A has so many rows, and each grouped row gathers one of them");
  add_choice(command, "--routing", options.routing, kRoutings, "grouped_gemm: how rows find their group (end_offsets)")->group("Problem");
  command.add_flag("--weighted", options.weighted, "grouped_gemm with --tokens: D sums the rows of each token by weights")
      ->group("Problem");
}

void add_operands(CLI::App& command, OpOptions& options) {
  const auto grouped = [](CLI::Option* option) { option->group("Operands"); };
  grouped(
      add_choice(command, "--a", options.a, all_formats(), "Format of A: f32, f16, bf16 or a block format; of the input of a conversion")
          ->type_name("FORMAT"));
  grouped(add_choice(command, "--b", options.b, all_formats(), block_format_list())->type_name("FORMAT"));
  grouped(add_choice(command, "--d", options.d, all_formats(), "Format of D, any; of the output of quantize and dequantize")
              ->type_name("FORMAT"));
  grouped(add_choice(command, "--scale-layout", options.scale_layout, kScaleLayouts,
                     "Where the block scales of A, B and D lie (linear); scale_128x4_per_group: of A, and 128x4 of B"));
  grouped(add_choice(command, "--to-scale-layout", options.to_scale_layout, kScaleLayouts, "repack: of the output (linear)"));
  grouped(
      add_choice(command, "--codes", options.codes, code_layouts(), "repack, dequantize: where the codes of the input lie (row_major)"));
  grouped(add_choice(command, "--to-codes", options.to_codes, code_layouts(), "repack: of the output (row_major)"));
  grouped(add_choice(command, "--profile", options.recipe.profile, profiles(), "quantize: whose bytes to make (finescale)"));
  grouped(add_choice(command, "--scales", options.recipe.search, kSearches, "quantize: how block scales are found (max)"));
  grouped(add_choice(command, "--producer", options.producer, kProducers, "quantize: what forms the value first (none)"));
}

void add_weights(CLI::App& command, OpOptions& options) {
  command.add_option("--weights", options.weights, "Products: B from a quantized checkpoint; gives --n, --k and --b")
      ->type_name("FILE|DIR")
      ->group("Operands");
  command.add_option("--module", options.module, "Which weights of it, each a batch or a group of B (*)")
      ->type_name("GLOB")
      ->group("Operands");
}

void add_epilogue(CLI::App& command, OpOptions& options) {
  add_plain_operand(command, "--bias", options.bias, "Add a bias to each column (f32)");
  add_plain_operand(command, "--residual", options.residual, "Add beta * C (f32)");
  command.add_option("--alpha", options.alpha, "Factor of the product (1)")->group("Epilogue");
  command.add_option("--beta", options.beta, "Factor of the residual (1)")->group("Epilogue");
  add_choice(command, "--act", options.activation, kActivations, "Activation (none)")->group("Epilogue");
  add_choice(command, "--gate", options.gate, kGates, "D = act(gate) * up, and where the two lie in B (none)")->group("Epilogue");
}

void add_execution(CLI::App& command, OpOptions& options) {
  command.add_option("--device", options.device, "cpu, or cuda:N (cpu)")->group("Execution");
  command.add_option("--kernel", options.kernel, "Force a kernel by name; all: every one that takes the problem")->group("Execution");
  command.add_option("--threads", options.threads, "CPU threads (all of the process)")
      ->check(whole_number(std::numeric_limits<std::int32_t>::max()))
      ->group("Execution");
  command.add_option("--seed", options.seed, "Seed of the operands (0)")
      ->check(whole_number(std::numeric_limits<std::uint64_t>::max()))
      ->group("Execution");
  command.add_flag("--prepared,!--in-place", options.prepared, "B in the device's prepared layout, or as it lies")->group("Execution");
  command.add_flag("--batch-invariant", options.batch_invariant, "Ask that a row's bits depend on no other row")->group("Execution");
}

struct OptionUse {
  const char* flag;
  std::vector<Op> ops;
};

// The options that only some ops read; any other op refuses them.
const std::vector<OptionUse>& option_uses() {
  static const std::vector<Op> products{Op::gemm, Op::gemv, Op::grouped_gemm};
  static const std::vector<OptionUse> uses{{"--n", products},
                                           {"--b", products},
                                           {"--bias", products},
                                           {"--residual", products},
                                           {"--alpha", products},
                                           {"--beta", products},
                                           {"--act", products},
                                           {"--gate", products},
                                           {"--prepared", products},
                                           {"--weights", products},
                                           {"--module", products},
                                           {"--groups", {Op::grouped_gemm}},
                                           {"--routing", {Op::grouped_gemm}},
                                           {"--tokens", {Op::grouped_gemm}},
                                           {"--weighted", {Op::grouped_gemm}},
                                           {"--batch-invariant", products},
                                           {"--codes", {Op::repack, Op::dequantize}},
                                           {"--to-codes", {Op::repack}},
                                           {"--to-scale-layout", {Op::repack}},
                                           {"--profile", {Op::quantize}},
                                           {"--scales", {Op::quantize}},
                                           {"--producer", {Op::quantize}}};
  return uses;
}

Status refuse_unread_options(const CLI::App& command, Op op) {
  for (const OptionUse& use : option_uses()) {
    if (command.count(use.flag) != 0 && std::find(use.ops.begin(), use.ops.end(), op) == use.ops.end()) {
      return invalid_argument(fmt::format("{}: {} does not read it", use.flag, op_name(op)));
    }
  }
  if (op == Op::grouped_gemm && command.count("--batch") != 0)
    return invalid_argument("--batch: grouped_gemm does not read it; see --groups");
  if (op == Op::repack && command.count("--d") != 0) return invalid_argument("--d: repack keeps the format of --a");
  return {};
}

// B and the sizes that it gives from a checkpoint.
Status load_weights(const CLI::App& command, OpOptions& options) {
  for (const char* flag : {"--n", "--k", "--b", "--batch", "--groups"}) {
    if (command.count(flag) != 0) return invalid_argument(fmt::format("{}: --weights gives it", flag));
  }
  if (options.gate == Gate::second_matrix) return invalid_argument("--gate second_matrix: --weights fills one matrix");
  auto weights = CheckpointWeights::open(options.weights, options.module);
  FINESCALE_TRY(weights);
  options.b = weights->format();
  options.n = options.gate == Gate::none ? weights->rows() : weights->rows() / 2;
  options.k = weights->cols();
  (options.op == Op::grouped_gemm ? options.groups : options.batch) = weights->count();
  options.loaded = std::make_shared<const CheckpointWeights>(*std::move(weights));
  return {};
}

// Sizes that are not given by weights must be given by options.
Status require_sizes(const CLI::App& command, const OpOptions& options) {
  std::vector<const char*> flags;
  if (options.op != Op::gemv) flags.push_back("--m");
  if (options.multiplies() && options.weights.empty()) flags.push_back("--n");
  if (options.weights.empty()) flags.push_back("--k");
  for (const char* flag : flags) {
    if (command.count(flag) == 0) return invalid_argument(fmt::format("{} is missing: {} needs it", flag, op_name(options.op)));
  }
  return {};
}

}  // namespace

std::string_view op_name(Op op) { return name_of(kOps, op); }

void add_op_options(CLI::App& command, OpOptions& options) {
  add_choice(command, "op", options.op, kOps, "What to run: D = epilogue(alpha * A * B^T), gemv with M = 1; or a conversion")->required();
  add_sizes(command, options);
  add_operands(command, options);
  add_weights(command, options);
  add_epilogue(command, options);
  add_execution(command, options);
}

void fill_formats(OpOptions& options) {
  const auto fill = [](Format& format, const Format& usual) {
    if (format.element == Element::none) format = usual;
  };
  switch (options.op) {
    case Op::quantize: fill(options.a, kF32), fill(options.d, kNvfp4); break;
    case Op::dequantize: fill(options.a, kNvfp4), fill(options.d, kF32); break;
    case Op::repack: fill(options.a, kNvfp4), options.d = options.a; break;
    default: fill(options.a, kBf16), fill(options.b, kNvfp4), fill(options.d, kBf16); break;
  }
}

Status finish_op_options(const CLI::App& command, OpOptions& options) {
  FINESCALE_TRY(refuse_unread_options(command, options.op));
  FINESCALE_TRY(require_sizes(command, options));
  if (options.op == Op::gemv) {
    if (command.count("--m") != 0 && options.m != 1)
      return invalid_argument(fmt::format("--m = {}: gemv has one row; use gemm", options.m));
    options.m = 1;
  }
  if (!options.weights.empty()) FINESCALE_TRY(load_weights(command, options));
  if (options.weighted && options.tokens == 0) return invalid_argument("--weighted: needs --tokens, the rows that are summed into");
  fill_formats(options);
  return {};
}

Result<Device> open_device(const OpOptions& options) {
  DeviceOptions open;
  open.threads = options.threads;
  return Device::open(options.device, open);
}

std::string describe(const OpOptions& options) {
  std::string text = fmt::format("{} ", op_name(options.op));
  if (options.multiplies()) {
    text += fmt::format("{} x {} x {}", options.m, options.n, options.k);
    if (options.op == Op::grouped_gemm) text += fmt::format(", {} groups by {}", options.groups, name_of(kRoutings, options.routing));
  } else {
    text += fmt::format("{} x {}", options.m, options.k);
  }
  if (options.batch != 1) text += fmt::format(", batch {}", options.batch);
  text += fmt::format(", a {}", format_name(options.a));
  if (options.multiplies()) text += fmt::format(", b {}{}", format_name(options.b), options.prepared ? " (prepared)" : "");
  text += fmt::format(", d {}", format_name(options.d));
  if (is_tiled(options.scale_layout)) text += fmt::format(", scales {}", layout_name(options.scale_layout));
  if (options.bias.element != Element::none) text += fmt::format(", bias {}", format_name(options.bias));
  if (options.residual.element != Element::none) text += fmt::format(", residual {}", format_name(options.residual));
  if (options.activation != Activation::none) text += fmt::format(", act {}", name_of(kActivations, options.activation));
  if (options.gate != Gate::none) text += fmt::format(", gate {}", name_of(kGates, options.gate));
  return text;
}

}  // namespace finescale::tools
