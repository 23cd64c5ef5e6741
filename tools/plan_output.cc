#include "plan_output.h"

#include "interrupt.h"

#include <fmt/format.h>

#include <filesystem>
#include <unordered_map>

namespace finescale::tools {
namespace {

using checkpoint::Action;
using checkpoint::CheckpointPlan;
using checkpoint::PlannedTensor;
using checkpoint::TensorSpec;
using checkpoint::WeightError;

// Errors by the name of the tensor.
class Errors {
 public:
  explicit Errors(const std::vector<WeightError>& errors) {
    for (const WeightError& error : errors) by_tensor_[error.tensor] = &error;
  }
  bool empty() const { return by_tensor_.empty(); }
  const WeightError* of(const PlannedTensor& planned) const {
    const auto found = by_tensor_.find(planned.source->name);
    return found == by_tensor_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const WeightError*> by_tensor_;
};

std::string spec_text(const TensorSpec& spec) {
  return fmt::format("{} {}", checkpoint::dtype_name(spec.dtype), checkpoint::shape_text(spec.shape));
}

void print_json_plan(std::string_view command, const CheckpointPlan& plan, const Errors& errors, const FileOptions& options) {
  Json rows = Json::array();
  for (const PlannedTensor& planned : plan.tensors) {
    Json row{{"tensor", planned.source->name},
             {"dtype", checkpoint::dtype_name(planned.source->dtype)},
             {"shape", planned.source->shape},
             {"action", checkpoint::action_name(planned.action)},
             {"reason", planned.reason}};
    Json outputs = Json::array();
    for (const TensorSpec& spec : planned.outputs) {
      outputs.push_back({{"tensor", spec.name}, {"dtype", checkpoint::dtype_name(spec.dtype)}, {"shape", spec.shape}});
    }
    row["outputs"] = outputs;
    if (const WeightError* error = errors.of(planned)) {
      row.update({{"relative_rms", finite(error->relative_rms)},
                  {"worst_block", finite(error->worst_block)},
                  {"worst_row", error->worst_row},
                  {"worst_col", error->worst_col}});
    }
    rows.push_back(std::move(row));
  }
  print_json(command, rows,
             {{"in", options.in},
              {"out", options.out},
              {"written", !options.dry_run},
              {"bytes_in", plan.bytes_in()},
              {"bytes_out", plan.bytes_out()},
              {"notes", plan.notes}});
}

std::string totals(const CheckpointPlan& plan) {
  std::string text;
  for (const Action action : {Action::quantize, Action::dequantize, Action::convert, Action::copy, Action::drop}) {
    if (const std::int64_t count = plan.count(action); count != 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", checkpoint::action_name(action), count);
    }
  }
  return text;
}

}  // namespace

void add_file_options(CLI::App& command, FileOptions& options) {
  command.add_option("in", options.in, "A safetensors file, or a directory of shards with its index and configs")
      ->required()
      ->type_name("IN");
  command.add_option("out", options.out, "A file for a file, a directory for a directory")->required()->type_name("OUT");
  command.add_flag("--dry-run", options.dry_run, "Say what would be done, and write nothing")->group("Writing");
  command.add_flag("--force", options.force, "Replace OUT where it exists")->group("Writing");
  add_output_options(command, options.output);
}

Status check_output_name(const FileOptions& options) {
  std::error_code error;
  if (options.force || !std::filesystem::exists(options.out, error)) return {};
  return invalid_argument(fmt::format("{}: exists already; --force replaces it", options.out));
}

checkpoint::OutputOptions output_options(const FileOptions& options, Progress& progress) {
  checkpoint::OutputOptions output;
  stop_on_signals();
  output.existing = options.force ? checkpoint::Existing::replace : checkpoint::Existing::refuse;
  output.progress = [&progress](const checkpoint::Progress& at) {
    progress.show(at.tensor, at.total_bytes == 0 ? 1.0 : static_cast<double>(at.bytes) / static_cast<double>(at.total_bytes));
    return stop_signal() == 0;
  };
  return output;
}

void print_plan(std::string_view command, const CheckpointPlan& plan, const std::vector<WeightError>& list, const FileOptions& options) {
  const Errors errors(list);
  if (options.output.json) return print_json_plan(command, plan, errors, options);
  if (options.output.quiet) return;
  std::vector<std::string> headings{"tensor", "stored as", "action"};
  if (!errors.empty()) headings.insert(headings.end(), {">relative RMS", ">worst block", "at row, column"});
  headings.emplace_back("why");
  Table table(headings);
  for (const PlannedTensor& planned : plan.tensors) {
    std::vector<std::string> cells{planned.source->name, spec_text(*planned.source), std::string(checkpoint::action_name(planned.action))};
    if (const WeightError* error = errors.of(planned)) {
      cells.push_back(fmt::format("{:.2f} %", 100 * error->relative_rms));
      cells.push_back(fmt::format("{:.2f} %", 100 * error->worst_block));
      cells.push_back(fmt::format("{}, {}", error->worst_row, error->worst_col));
    } else if (!errors.empty()) {
      cells.insert(cells.end(), 3, "-");
    }
    cells.push_back(planned.reason);
    table.add(std::move(cells));
  }
  table.print();
  fmt::print("\n{}: {} -> {}\n", totals(plan), readable_bytes(static_cast<double>(plan.bytes_in())),
             readable_bytes(static_cast<double>(plan.bytes_out())));
  for (const std::string& note : plan.notes) fmt::print("note: {}\n", printable(note));
  fmt::print("{}\n", options.dry_run ? "nothing was written" : fmt::format("wrote {}", options.out));
}

}  // namespace finescale::tools
