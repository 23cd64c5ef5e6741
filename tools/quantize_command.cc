// finescale quantize IN OUT: the linear weights of a checkpoint into a block format, everything else byte for byte.
#include "choice_option.h"
#include "command.h"
#include "plan_output.h"

#include "checkpoint/encoding.h"
#include "checkpoint/quantize_checkpoint.h"

#include <finescale/formats/recipe.h>

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

namespace finescale::tools {
namespace {

struct Options {
  FileOptions files;
  Format format = kNvfp4;
  const checkpoint::Encoding* encoding = nullptr;
  checkpoint::QuantizeCheckpointOptions quantize;
  std::int32_t threads = 0;
};

NamedValues<Format> block_formats() {
  NamedValues<Format> formats;
  for (const NamedFormat& row : kFormats) {
    if (!row.format.is_plain()) formats.push_back({row.name, row.format});
  }
  return formats;
}

NamedValues<const checkpoint::Encoding*> encoding_choices() {
  NamedValues<const checkpoint::Encoding*> choices;
  for (const checkpoint::Encoding* encoding : checkpoint::encodings()) choices.push_back({encoding->name, encoding});
  return choices;
}

NamedValues<Profile> profiles() {
  NamedValues<Profile> list;
  for (const NamedProfile& row : kProfiles) list.push_back({row.name, row.profile});
  return list;
}

const NamedValues<ScaleSearch> kSearches{{"max", ScaleSearch::max}, {"four_six", ScaleSearch::four_six}, {"mse", ScaleSearch::mse}};

// The encoding that was named, or the first that holds the format.
Result<const checkpoint::Encoding*> choose_encoding(const Options& options) {
  for (const checkpoint::Encoding* encoding : checkpoint::encodings()) {
    if (options.encoding != nullptr && options.encoding != encoding) continue;
    if (encoding->format == options.format) return encoding;
  }
  return unsupported(fmt::format("--format {}: {} in files{}; known encodings: {}", format_name(options.format), "no encoding writes it",
                                 options.encoding != nullptr ? fmt::format(" of {}", options.encoding->name) : "",
                                 checkpoint::encoding_names()));
}

Exit run(Options& options) {
  const auto encoding = choose_encoding(options);
  if (!encoding) return fail(encoding.status());
  options.quantize.encoding = *encoding;
  const auto checkpoint = checkpoint::Checkpoint::open(options.files.in);
  if (!checkpoint) return fail(checkpoint.status(), Blame::files);
  if (options.files.dry_run) {
    const auto plan = checkpoint::plan_quantize_checkpoint(*checkpoint, options.quantize);
    if (!plan) return fail(plan.status(), Blame::files);
    print_plan("quantize", *plan, {}, options.files);
    return Exit::ok;
  }
  if (const Status free = check_output_name(options.files); !free) return fail(free, Blame::files);
  DeviceOptions device_options;
  device_options.threads = options.threads;
  const auto device = Device::open("cpu", device_options);
  if (!device) return fail(device.status());
  Progress progress(!options.files.output.quiet);
  const auto report =
      checkpoint::quantize_checkpoint(*checkpoint, options.files.out, options.quantize, output_options(options.files, progress), *device);
  progress.clear();
  if (!report) return fail(report.status(), Blame::files);
  print_plan("quantize", report->plan, report->errors, options.files);
  return Exit::ok;
}

constexpr const char* kFooter = R"(Examples:
  finescale quantize model.safetensors model-nvfp4.safetensors --format nvfp4 --report
  finescale quantize model/ model-nvfp4/ --encoding compressed_tensors --scales four_six
  finescale quantize model/ model-nvfp4/ --exclude '*.down_proj' --dry-run

Quantized by default: tensors named *.weight of rank 2 in f32, f16 or bf16, none of whose dotted parts is or contains embed,
norm, lm_head or router, or is exactly gate. The list says for every tensor what is done with it, and why. --include and
--exclude take globs over tensor or module names, and may be given again; --include wins.
The global scale of a weight is amax / 2688; q/k/v and gate/up weights of one layer, which engines fuse, share the largest.
A weight that holds NaN or Inf is refused by name, unless --allow-nonfinite: then its blocks become NaN.
Nothing appears under the name OUT before it is complete.)";

}  // namespace

void add_quantize(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("quantize", "Quantize the weights of a checkpoint");
  const auto options = std::make_shared<Options>();
  add_file_options(*command, options->files);
  add_choice(*command, "--format", options->format, block_formats(), "Format of the weights (nvfp4)")->group("What");
  add_choice(*command, "--encoding", options->encoding, encoding_choices(), "How they lie in the file (modelopt)")->group("What");
  add_choice(*command, "--profile", options->quantize.recipe.profile, profiles(), "Whose bytes to make (finescale)")->group("What");
  add_choice(*command, "--scales", options->quantize.recipe.search, kSearches, "How block scales are found (max)")->group("What");
  command->add_option("--include", options->quantize.include, "Also quantize what matches")->type_name("GLOB")->group("Which");
  command->add_option("--exclude", options->quantize.exclude, "Leave alone what matches")->type_name("GLOB")->group("Which");
  command->add_flag("!--no-share", options->quantize.share_global, "A global scale of its own for every weight")->group("Which");
  command->add_flag("--allow-nonfinite", options->quantize.allow_nonfinite, "Quantize weights that hold NaN or Inf too")->group("Which");
  command->add_flag("--report", options->quantize.measure, "Measure the error of every quantized weight")->group("Output");
  command->add_option("--threads", options->threads, "CPU threads (all of the process)")
      ->check(whole_number(std::numeric_limits<std::int32_t>::max()))
      ->group("Execution");
  command->footer(kFooter);
  command->callback([options, &exit] { exit = run(*options); });
}

}  // namespace finescale::tools
