// What every subcommand shares: how it registers itself, what it exits with, how it fails.
//
// A subcommand is one file with one add_ function, listed in main.cc. It fails through fail(), so that a sentence goes to
// stderr and the exit code is the one the manual promises.
#pragma once

#include <finescale/status.h>

#include <CLI/CLI.hpp>

#include <cstdint>

namespace finescale::tools {

// The exit codes, stable for scripts.
enum class Exit : int {
  ok = 0,
  differences = 1,  // check found an output outside its bound
  usage = 2,        // an option, or a combination of options, is wrong
  files = 3,        // bad input, reading, writing
  unsupported = 4,  // no kernel takes it, or a feature is not built
  device = 5,       // the device failed or is not there
  internal = 6,     // out of memory, or a bug
};

// Whose fault an invalid_argument is: the command line's, or that of a file it named.
enum class Blame { options, files };

Exit exit_for(Code code, Blame blame);

// Prints the sentence on stderr; returns the exit code for it.
Exit fail(const Status& status, Blame blame = Blame::options);

// Takes decimal digits that make a number from 0 to `largest`, and nothing else.
CLI::Validator whole_number(std::uint64_t largest);

// Adds a subcommand to the app. When it was chosen, parsing runs it and sets `exit`.
using AddCommand = void (*)(CLI::App& app, Exit& exit);

void add_info(CLI::App& app, Exit& exit);
void add_inspect(CLI::App& app, Exit& exit);
void add_quantize(CLI::App& app, Exit& exit);
void add_dequantize(CLI::App& app, Exit& exit);
void add_convert(CLI::App& app, Exit& exit);
void add_check(CLI::App& app, Exit& exit);
void add_bench(CLI::App& app, Exit& exit);
void add_explain(CLI::App& app, Exit& exit);

}  // namespace finescale::tools
