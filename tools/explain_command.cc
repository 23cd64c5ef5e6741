// finescale explain OP: every kernel row of the op, best first, with taken, accepted or refused, and why.
#include "command.h"
#include "op_options.h"
#include "op_problem.h"
#include "printing.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

namespace finescale::tools {
namespace {

struct Options {
  OpOptions op;
  Output output;
};

const char* verdict(const Explanation& row) { return row.taken ? "taken" : row.accepted ? "accepted" : "refused"; }

// Why, without the kernel's name, which stands beside it.
std::string why(const Explanation& row) {
  const std::string name = std::string(row.kernel) + ": ";
  std::string text = row.sentence;
  if (const auto at = text.find(name); at != std::string::npos) text.erase(at, name.size());
  return text;
}

void print_rows(const Options& options, const std::vector<Explanation>& rows) {
  if (options.output.quiet) return;
  if (options.output.json) {
    Json list = Json::array();
    for (const Explanation& row : rows) {
      list.push_back({{"kernel", row.kernel}, {"verdict", verdict(row)}, {"why", why(row)}});
    }
    print_json("explain", list, {{"problem", describe(options.op)}, {"device", options.op.device}});
    return;
  }
  fmt::print("{} on {}\n", describe(options.op), options.op.device);
  Table table({"kernel", "verdict", "why"});
  for (const Explanation& row : rows) table.add({std::string(row.kernel), verdict(row), why(row)});
  table.print();
}

Exit run(const CLI::App& command, Options& options) {
  if (const Status status = finish_op_options(command, options.op); !status) return fail(status);
  const auto device = open_device(options.op);
  if (!device) return fail(device.status());
  return visit_shape(options.op, [&](auto problem) {
    if (const Status status = set_prepared_tags(options.op, *device, problem); !status) return fail(status);
    const auto made = plan(problem, *device);
    if (!made && made.status().code != Code::unsupported) return fail(made.status());
    print_rows(options, explain(problem, *device));
    return made ? Exit::ok : fail(made.status());
  });
}

constexpr const char* kFooter = R"(Examples:
  finescale explain gemm --m 256 --n 4096 --k 4096 --a bf16 --b nvfp4 --d bf16
  finescale explain gemv --n 4096 --k 4096 --b mxfp4 --prepared
  finescale explain quantize --m 128 --k 4096 --a bf16 --d nvfp4 --scale-layout scale_128x4

The first row that supports the problem and suits it is taken, else the first that supports it. A forced kernel only has
to support it. The choice never depends on pointers or values, so it can be explained without operands.)";

}  // namespace

void add_explain(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("explain", "Say why each kernel is taken or refused for a problem");
  const auto options = std::make_shared<Options>();
  add_op_options(*command, options->op);
  add_output_options(*command, options->output);
  command->footer(kFooter);
  command->callback([command, options, &exit] { exit = run(*command, *options); });
}

}  // namespace finescale::tools
