#include "verdict_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace finescale::tools {
namespace {

Json json_row(const VerdictRow& row, bool is_product) {
  const Verdict& v = row.verdict;
  Json at;
  if (v.row >= 0) at = {{"batch", v.batch}, {"row", v.row}, {"col", v.col}};
  Json json{{"kernel", row.kernel},
            {"ok", v.ok},
            {"worst", finite(v.worst)},
            {"unit", is_product ? "bounds" : "differences"},
            {"at", at},
            {"observed", finite(v.observed)},
            {"exact", finite(v.exact)},
            {"bound", finite(v.bound)},
            {"checked", v.checked},
            {"outputs", v.outputs}};
  if (!row.fault.empty()) json["fault"] = row.fault;
  return json;
}

std::string place(const Verdict& v) { return v.row < 0 ? "-" : fmt::format("{}, {}, {}", v.batch, v.row, v.col); }

std::string share(const Verdict& v) {
  if (v.checked == v.outputs) return fmt::format("all {}", v.outputs);
  return fmt::format("{:.3g} % of {}", 100.0 * static_cast<double>(v.checked) / static_cast<double>(v.outputs), v.outputs);
}

void print_table(const std::string& title, bool is_product, const std::vector<VerdictRow>& rows, const std::vector<Explanation>& refused) {
  fmt::print("{}\n", title);
  Table table({"kernel", "verdict", is_product ? ">worst / bound" : ">differences", "at batch, row, col", ">observed", ">exact", ">bound",
               "checked"});
  for (const VerdictRow& row : rows) {
    const Verdict& v = row.verdict;
    const bool somewhere = v.row >= 0;
    table.add({row.kernel, v.ok ? "ok" : "WRONG", fmt::format("{:.3g}", v.worst), place(v),
               somewhere ? fmt::format("{:.7g}", v.observed) : "-", somewhere ? fmt::format("{:.7g}", v.exact) : "-",
               somewhere && is_product ? fmt::format("{:.3g}", v.bound) : "-", share(v)});
  }
  table.print();
  for (const VerdictRow& row : rows) {
    if (!row.fault.empty()) fmt::print("{}: {}\n", row.kernel, row.fault);
  }
  for (const Explanation& row : refused) fmt::print("skipped {}\n", row.sentence.empty() ? std::string(row.kernel) : row.sentence);
}

}  // namespace

void print_verdicts(const std::string& title, bool is_product, const std::vector<VerdictRow>& rows, const std::vector<Explanation>& refused,
                    const Output& output) {
  if (output.json) {
    Json list = Json::array(), skipped = Json::array();
    for (const VerdictRow& row : rows) list.push_back(json_row(row, is_product));
    for (const Explanation& row : refused) skipped.push_back({{"kernel", row.kernel}, {"why", row.sentence}});
    print_json("check", list, {{"problem", title}, {"skipped", skipped}});
  } else if (!output.quiet) {
    print_table(title, is_product, rows, refused);
  }
}

Exit exit_for_verdicts(const std::vector<VerdictRow>& rows) {
  const bool ok = std::all_of(rows.begin(), rows.end(), [](const VerdictRow& row) { return row.verdict.ok; });
  return ok ? Exit::ok : Exit::differences;
}

}  // namespace finescale::tools
