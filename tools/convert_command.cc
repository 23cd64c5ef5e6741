// finescale convert IN OUT: quantized weights from one encoding to another; codes and block scales keep their bytes.
#include "choice_option.h"
#include "command.h"
#include "plan_output.h"

#include "checkpoint/convert_checkpoint.h"

#include <memory>

namespace finescale::tools {
namespace {

struct Options {
  FileOptions files;
  const checkpoint::Encoding* encoding = nullptr;
};

NamedValues<const checkpoint::Encoding*> encoding_choices() {
  NamedValues<const checkpoint::Encoding*> choices;
  for (const checkpoint::Encoding* encoding : checkpoint::encodings()) choices.push_back({encoding->name, encoding});
  return choices;
}

Exit run(const Options& options) {
  const auto checkpoint = checkpoint::Checkpoint::open(options.files.in);
  if (!checkpoint) return fail(checkpoint.status(), Blame::files);
  if (const Status free = check_output_name(options.files); !free && !options.files.dry_run) return fail(free, Blame::files);
  Progress progress(!options.files.output.quiet);
  const auto plan = options.files.dry_run ? checkpoint::plan_convert_checkpoint(*checkpoint, *options.encoding)
                                          : checkpoint::convert_checkpoint(*checkpoint, options.files.out, *options.encoding,
                                                                           output_options(options.files, progress));
  progress.clear();
  if (!plan) return fail(plan.status(), Blame::files);
  print_plan("convert", *plan, {}, options.files);
  return Exit::ok;
}

constexpr const char* kFooter = R"(Examples:
  finescale convert model-modelopt.safetensors model-ct.safetensors --encoding compressed_tensors
  finescale convert model-ct/ model-modelopt/ --encoding modelopt

modelopt stores the global scale as a multiplier, compressed_tensors as a divisor: an FP32 reciprocal does not always lead
back to the same bits, and a note counts where it does not.)";

}  // namespace

void add_convert(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("convert", "Rewrite a quantized checkpoint in another encoding");
  const auto options = std::make_shared<Options>();
  add_file_options(*command, options->files);
  add_choice(*command, "--encoding", options->encoding, encoding_choices(), "The encoding to write")->required();
  command->footer(kFooter);
  command->callback([options, &exit] { exit = run(*options); });
}

}  // namespace finescale::tools
