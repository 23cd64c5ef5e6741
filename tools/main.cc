// finescale: the command-line tool. Builds the app from the list of subcommands and exits with what the chosen one says.
#include "command.h"

#include "interrupt.h"

#include "finescale_built.h"

#include <finescale/formats/format.h>
#include <finescale/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace finescale::tools {
namespace {

constexpr AddCommand kCommands[] = {add_info, add_inspect, add_quantize, add_dequantize, add_convert, add_check, add_bench, add_explain};

std::string version_text() {
  std::string formats;
  for (const NamedFormat& row : kFormats) formats += fmt::format(" {}", row.name);
  return fmt::format("finescale {}\nbackends: reference cpu{}\nformats:{}", library_version(),
                     built::kCuda ? fmt::format(" cuda ({})", built::kCudaArchitectures) : "", formats);
}

constexpr const char* kFooter = R"(Start here:
  finescale info                                       what this machine and this build can do
  finescale inspect model.safetensors                  what is in a checkpoint, and what looks wrong
  finescale quantize model.safetensors model-nvfp4.safetensors --format nvfp4
  finescale check gemm --m 256 --n 1024 --k 1024 --a bf16 --b nvfp4 --d bf16
  finescale bench gemv --n 4096 --k 4096 --a bf16 --b nvfp4 --d bf16 --cold 512
  finescale explain gemm --m 256 --n 1024 --k 1024     why each kernel is taken or refused

Exit codes: 0 ok, 1 differences found, 2 usage, 3 files, 4 unsupported, 5 device, 6 internal or out of memory.
`finescale COMMAND --help` teaches each one.)";

// CLI11 would only say that a subcommand is missing.
Status check_command_name(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return {};
  return invalid_argument(fmt::format("\"{}\" is none of the commands {}", argv[1], fmt::join(names, ", ")));
}

std::string failure_message(const CLI::App*, const CLI::Error& error) {
  return fmt::format("finescale: {}\nRun with --help for more information.\n", error.what());
}

int run(int argc, char** argv) {
  CLI::App app{"Block-scaled linear algebra: quantize, convert, multiply, and prove what was computed.", "finescale"};
  Exit exit = Exit::ok;
  app.set_version_flag("--version", version_text(), "Print the version and what is built in");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.failure_message(failure_message);
  for (const AddCommand add : kCommands) add(app, exit);
  if (const Status known = check_command_name(app, argc, argv); !known) return static_cast<int>(fail(known));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_text = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    app.exit(error);
    return static_cast<int>(asked_for_text ? Exit::ok : Exit::usage);
  } catch (const std::bad_alloc&) {
    return static_cast<int>(fail(out_of_memory("out of memory")));
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return static_cast<int>(exit);  // finish() tells
    return static_cast<int>(fail(internal_error(fmt::format("internal error: {}", error.what()))));
  }
  return static_cast<int>(exit);
}

// A file opened later must not become stdout or stderr because its caller closed them; a file size limit is a failed write.
void prepare_process() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

// Output that could not be written is a failure; a stopped command ends by the signal that stopped it.
int finish(int exit) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    const Exit failed = fail(io_error("stdout does not take all of the output"));
    if (exit == static_cast<int>(Exit::ok)) exit = static_cast<int>(failed);
  }
  if (exit != static_cast<int>(Exit::ok) && stop_signal() != 0) {
    std::signal(stop_signal(), SIG_DFL);
    std::raise(stop_signal());
  }
  return exit;
}

}  // namespace
}  // namespace finescale::tools

int main(int argc, char** argv) {
  finescale::tools::prepare_process();
  return finescale::tools::finish(finescale::tools::run(argc, argv));
}
