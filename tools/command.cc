#include "command.h"

#include <fmt/format.h>

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
  fmt::print(stderr, "finescale: {}\n", status.sentence);
  return exit_for(status.code, blame);
}

}  // namespace finescale::tools
