// finescale inspect FILE|DIR: the tensors of a checkpoint, how its quantized weights are read, and what looks wrong.
#include "command.h"
#include "printing.h"

#include "checkpoint/inspect_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

namespace finescale::tools {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Finding;
using checkpoint::InspectedWeight;
using checkpoint::Inspection;
using checkpoint::Severity;
using checkpoint::Tensor;

struct Options {
  std::string path;
  checkpoint::InspectOptions inspect;
  bool strict = false;
  Output output;
};

const char* severity_name(Severity severity) { return severity == Severity::suspicious ? "suspicious" : "mention"; }

using Roles = std::unordered_map<const Tensor*, std::string>;

// What each tensor is, as far as an encoding reads it.
Roles roles_of(const Inspection& inspection) {
  Roles roles;
  for (const InspectedWeight& row : inspection.weights) {
    const checkpoint::QuantizedWeight& weight = row.weight;
    const std::string_view name = format_name(weight.tags.format);
    roles[weight.codes] = fmt::format("{} codes, {} x {}", name, weight.tags.rows, weight.tags.cols);
    roles[weight.scales] = fmt::format("{} block scales", name);
    roles[weight.global] = fmt::format("{} global scale", name);
    roles[weight.input_scale] = "input scale";
  }
  for (const checkpoint::UnreadTensor& unread : inspection.unread) roles[unread.tensor] = "not read: " + unread.why.sentence;
  return roles;
}

std::string role_of(const Tensor& tensor, const Roles& roles) {
  const auto found = roles.find(&tensor);
  return found == roles.end() ? std::string() : found->second;
}

Json json_weight(const InspectedWeight& row, bool scanned) {
  const checkpoint::QuantizedWeight& weight = row.weight;
  Json json{{"module", weight.module},
            {"format", format_name(weight.tags.format)},
            {"encoding", weight.encoding->name},
            {"rows", weight.tags.rows},
            {"cols", weight.tags.cols},
            {"scale_layout", layout_name(weight.tags.scale_layout)},
            {"global_scale", finite(weight.global_scale)}};
  if (scanned) {
    json["scales"] = {{"smallest", finite(row.scales.smallest)},
                      {"largest", finite(row.scales.largest)},
                      {"nan", row.scales.nan},
                      {"negative", row.scales.negative},
                      {"zero", row.scales.zero},
                      {"zero_with_codes", row.scales.zero_with_codes}};
  }
  return json;
}

void print_for_programs(const Options& options, const Checkpoint& checkpoint, const Inspection& inspection) {
  const Roles roles = roles_of(inspection);
  Json rows = Json::array(), weights = Json::array(), findings = Json::array();
  for (const Tensor& tensor : checkpoint.tensors()) {
    rows.push_back({{"tensor", tensor.name},
                    {"dtype", checkpoint::dtype_name(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes.size()},
                    {"shard", checkpoint.shard_name(tensor.shard)},
                    {"role", role_of(tensor, roles)}});
  }
  for (const InspectedWeight& row : inspection.weights) weights.push_back(json_weight(row, options.inspect.scan_values));
  for (const Finding& finding : inspection.findings) {
    findings.push_back({{"severity", severity_name(finding.severity)}, {"tensor", finding.tensor}, {"sentence", finding.sentence}});
  }
  const Json metadata{
      {"source", inspection.metadata.source}, {"method", inspection.metadata.method}, {"algorithm", inspection.metadata.algorithm}};
  print_json("inspect", rows, {{"path", options.path}, {"metadata", metadata}, {"weights", weights}, {"findings", findings}});
}

void print_weights(const Options& options, const Inspection& inspection) {
  if (inspection.weights.empty()) return;
  fmt::print("\n");
  Table table({"quantized weight", "format", "encoding", ">rows", ">columns", "scale layout", ">global scale", ">smallest scale",
               ">largest scale"});
  for (const InspectedWeight& row : inspection.weights) {
    const checkpoint::QuantizedWeight& weight = row.weight;
    const bool scanned = options.inspect.scan_values;
    table.add({weight.module, std::string(format_name(weight.tags.format)), std::string(weight.encoding->name),
               fmt::format("{}", weight.tags.rows), fmt::format("{}", weight.tags.cols), std::string(layout_name(weight.tags.scale_layout)),
               fmt::format("{:.6g}", weight.global_scale), scanned ? fmt::format("{:.6g}", row.scales.smallest) : "-",
               scanned ? fmt::format("{:.6g}", row.scales.largest) : "-"});
  }
  table.print();
}

void print_for_people(const Options& options, const Checkpoint& checkpoint, const Inspection& inspection) {
  const Roles roles = roles_of(inspection);
  double bytes = 0;
  Table tensors({"tensor", "dtype", "shape", ">bytes", "what it is"});
  for (const Tensor& tensor : checkpoint.tensors()) {
    bytes += static_cast<double>(tensor.bytes.size());
    tensors.add({tensor.name, std::string(checkpoint::dtype_name(tensor.dtype)), checkpoint::shape_text(tensor.shape),
                 fmt::format("{}", tensor.bytes.size()), role_of(tensor, roles)});
  }
  fmt::print("{}: {} tensors in {} file{}, {}\n", options.path, checkpoint.tensors().size(), checkpoint.shard_count(),
             checkpoint.shard_count() == 1 ? "" : "s", readable_bytes(bytes));
  if (!inspection.metadata.absent()) {
    fmt::print("quantization says {}: {} {}\n", inspection.metadata.source, inspection.metadata.method, inspection.metadata.algorithm);
  }
  fmt::print("\n");
  tensors.print();
  print_weights(options, inspection);
  fmt::print("\n");
  for (const Finding& finding : inspection.findings) {
    fmt::print("{}: {}{}{}\n", severity_name(finding.severity), printable(finding.tensor), finding.tensor.empty() ? "" : ": ",
               printable(finding.sentence));
  }
  if (inspection.findings.empty()) fmt::print("nothing looks wrong\n");
}

bool is_suspicious(const Inspection& inspection) {
  return std::any_of(inspection.findings.begin(), inspection.findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::suspicious; });
}

Exit run(const Options& options) {
  const auto checkpoint = Checkpoint::open(options.path);
  if (!checkpoint) return fail(checkpoint.status(), Blame::files);
  const auto inspection = checkpoint::inspect_checkpoint(*checkpoint, options.inspect);
  if (!inspection) return fail(inspection.status(), Blame::files);
  if (options.output.json) print_for_programs(options, *checkpoint, *inspection);
  if (!options.output.json && !options.output.quiet) print_for_people(options, *checkpoint, *inspection);
  return options.strict && is_suspicious(*inspection) ? Exit::differences : Exit::ok;
}

constexpr const char* kFooter = R"(Examples:
  finescale inspect model-nvfp4.safetensors
  finescale inspect model-nvfp4/ --strict --quiet && echo clean

Every scale and code is read unless --headers-only. Suspicious are, among others: NaN or negative block scales, zero scales
under codes that are not zero, a global scale that is not positive or reads as a divisor, siblings whose global scales differ.
Partial blocks are legal and only mentioned.)";

}  // namespace

void add_inspect(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a checkpoint, and what looks wrong");
  const auto options = std::make_shared<Options>();
  command->add_option("path", options->path, "A safetensors file, or a directory of shards")->required()->type_name("FILE|DIR");
  command->add_flag("!--headers-only", options->inspect.scan_values, "Do not read scales and codes");
  command->add_flag("--strict", options->strict, "Exit with 1 where anything is suspicious");
  add_output_options(*command, options->output);
  command->footer(kFooter);
  command->callback([options, &exit] { exit = run(*options); });
}

}  // namespace finescale::tools
