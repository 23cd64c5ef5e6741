// Options and output that quantize, dequantize and convert share: where the result goes, and what is done with every tensor.
#pragma once

#include "command.h"
#include "printing.h"

#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/quantize_checkpoint.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace finescale::tools {

struct FileOptions {
  std::string in, out;
  bool dry_run = false;
  bool force = false;
  Output output;
};

// IN, OUT, --dry-run, --force, and the output options.
void add_file_options(CLI::App& command, FileOptions& options);

// invalid_argument: OUT exists, and --force was not given.
Status check_output_name(const FileOptions& options);

// Existing files are replaced with --force only; progress goes to stderr where that is a terminal, and signals stop the writing.
checkpoint::OutputOptions output_options(const FileOptions& options, Progress& progress);

// One row a tensor: what is done with it and why; then totals and notes. `errors` may be empty.
void print_plan(std::string_view command, const checkpoint::CheckpointPlan& plan, const std::vector<checkpoint::WeightError>& errors,
                const FileOptions& options);

}  // namespace finescale::tools
