#include "command.h"

#include "printing.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

namespace finescale::tools {

Exit exit_for(Code code, Blame blame) {
  switch (code) {
    case Code::ok: return Exit::ok;
    case Code::invalid_argument: return blame == Blame::files ? Exit::files : Exit::usage;
    case Code::io_error: return Exit::files;
    case Code::unsupported: return Exit::unsupported;
    case Code::device_error: return Exit::device;
    case Code::out_of_memory:
    case Code::internal: break;
  }
  return Exit::internal;
}

Exit fail(const Status& status, Blame blame) {
  // Not fmt::print: where stderr takes nothing, the exit code still tells.
  std::fputs(fmt::format("finescale: {}\n", printable(status.sentence)).c_str(), stderr);
  return exit_for(status.code, blame);
}

CLI::Validator whole_number(std::uint64_t largest) {
  const auto check = [largest](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool read = error == std::errc{} && end == text.data() + text.size();
    return read && number <= largest ? "" : fmt::format("\"{}\" is no whole number from 0 to {}", text, largest);
  };
  return CLI::Validator(check, "");
}

}  // namespace finescale::tools
