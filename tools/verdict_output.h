// Prints what check found: a row for each kernel, and those that were not run.
#pragma once

#include "command.h"
#include "printing.h"
#include "verdict.h"

#include <finescale/kernel.h>

#include <string>
#include <vector>

namespace finescale::tools {

struct VerdictRow {
  std::string kernel;
  Verdict verdict;
  std::string fault;  // what was planted, or what else is wrong; empty: nothing
};

// is_product: worst is in units of the bound; else it counts codes and scales.
void print_verdicts(const std::string& title, bool is_product, const std::vector<VerdictRow>& rows, const std::vector<Explanation>& refused,
                    const Output& output);

Exit exit_for_verdicts(const std::vector<VerdictRow>& rows);

}  // namespace finescale::tools
