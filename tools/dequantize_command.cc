// finescale dequantize IN OUT: the quantized weights of a checkpoint back to plain ones.
#include "choice_option.h"
#include "command.h"
#include "plan_output.h"

#include "checkpoint/dequantize_checkpoint.h"

#include <memory>

namespace finescale::tools {
namespace {

struct Options {
  FileOptions files;
  checkpoint::DequantizeCheckpointOptions dequantize;
};

const NamedValues<checkpoint::Dtype> kDtypes{
    {"f32", checkpoint::Dtype::f32}, {"f16", checkpoint::Dtype::f16}, {"bf16", checkpoint::Dtype::bf16}};

Exit run(const Options& options) {
  const auto checkpoint = checkpoint::Checkpoint::open(options.files.in);
  if (!checkpoint) return fail(checkpoint.status(), Blame::files);
  const auto device = Device::open("cpu");
  if (!device) return fail(device.status());
  if (const Status free = check_output_name(options.files); !free && !options.files.dry_run) return fail(free, Blame::files);
  Progress progress(!options.files.output.quiet);
  const auto plan = options.files.dry_run ? checkpoint::plan_dequantize_checkpoint(*checkpoint, options.dequantize)
                                          : checkpoint::dequantize_checkpoint(*checkpoint, options.files.out, options.dequantize,
                                                                              output_options(options.files, progress), *device);
  progress.clear();
  if (!plan) return fail(plan.status(), Blame::files);
  print_plan("dequantize", *plan, {}, options.files);
  return Exit::ok;
}

constexpr const char* kFooter = R"(Examples:
  finescale dequantize model-nvfp4.safetensors model-bf16.safetensors --dtype bf16
  finescale dequantize model-nvfp4/ model-f32/ --dtype f32 --dry-run

A value is element * block scale, rounded to FP32, times the global scale, rounded to FP32, then cast once: the same bytes on
every machine. Scales are dropped, the rest is copied byte for byte, configs lose their quantization.)";

}  // namespace

void add_dequantize(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("dequantize", "Turn the quantized weights of a checkpoint back into plain ones");
  const auto options = std::make_shared<Options>();
  add_file_options(*command, options->files);
  add_choice(*command, "--dtype", options->dequantize.dtype, kDtypes, "Of the weights (bf16)");
  command->footer(kFooter);
  command->callback([options, &exit] { exit = run(*options); });
}

}  // namespace finescale::tools
