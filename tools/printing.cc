#include "printing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace finescale::tools {
namespace {

std::string pad(const std::string& cell, std::size_t width, bool right) {
  return right ? fmt::format("{:>{}}", cell, width) : fmt::format("{:<{}}", cell, width);
}

}  // namespace

void add_output_options(CLI::App& command, Output& output) {
  auto* json = command.add_flag("--json", output.json, "Print one JSON object instead of a table")->group("Output");
  command.add_flag("--quiet", output.quiet, "Print errors only; the exit code tells the rest")->group("Output")->excludes(json);
}

void print_json(std::string_view what, Json rows, const Json& more) {
  Json object;
  object["schema"] = fmt::format("finescale.{}/1", what);
  object["rows"] = std::move(rows);
  object.update(more);
  fmt::print("{}\n", object.dump(2, ' ', false, Json::error_handler_t::replace));
}

double finite(double value) {
  if (std::isfinite(value)) return value;
  return value < 0 ? std::numeric_limits<double>::lowest() : std::numeric_limits<double>::max();
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, in UTF-8 0xC2 and one byte, are control characters too.
    const bool wide = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || wide) {
      shown += fmt::format("\\x{:02X}", wide ? static_cast<unsigned char>(text[++i]) : byte);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

void Table::print() const {
  std::vector<std::size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(heading.size());
  for (const auto& row : rows_) {
    for (std::size_t column = 0; column < row.size(); ++column) widths[column] = std::max(widths[column], row[column].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += (column == 0 ? "" : "  ") + pad(cells[column], widths[column], right_[column]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    fmt::print("{}\n", text);
  };
  line(headings_);
  for (const auto& row : rows_) line(row);
}

std::string readable_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1024 && unit < 3; bytes /= 1024) ++unit;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string readable_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

Progress::Progress(bool wanted) : active_(wanted && isatty(STDERR_FILENO) != 0) {}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

void Progress::show(std::string_view what, double share) {
  if (!active_) return;
  shown_ = true;
  fmt::print(stderr, "\r\033[K{:3.0f} % {:.100}", 100 * share, printable(what));
  std::fflush(stderr);
}

}  // namespace finescale::tools
