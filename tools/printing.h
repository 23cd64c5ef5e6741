// How subcommands print: aligned tables for people, one JSON object for programs, progress on a terminal only.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace finescale::tools {

using Json = nlohmann::ordered_json;

struct Output {
  bool json = false;
  bool quiet = false;  // nothing but errors; the exit code tells
};

// --json and --quiet.
void add_output_options(CLI::App& command, Output& output);

// One JSON object on stdout: {"schema": "finescale.<what>/1", "rows": [...], more...}.
void print_json(std::string_view what, Json rows, const Json& more = Json::object());

// JSON has no infinity: an infinite number is written as the largest double.
double finite(double value);

// Text of a file, safe for a terminal: control characters become \x1B and the like.
std::string printable(std::string_view text);

// Columns of text, padded to their widest cell. A heading that begins with '>' makes a column flush right.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  void print() const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// 1536 -> "1.5 KiB".
std::string readable_bytes(double bytes);
// 0.00123 -> "1.23 ms".
std::string readable_seconds(double seconds);

// One line on stderr that is overwritten; silent where stderr is no terminal.
class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view what, double share);
  void clear();

 private:
  bool active_;
  bool shown_ = false;
};

}  // namespace finescale::tools
