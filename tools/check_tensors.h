// check gemm --tensors FILE: judges a product that was made elsewhere. Operands and D are tensors of a safetensors file;
// the options give the formats and the scale layout that they are to be read in.
#pragma once

#include "command.h"
#include "op_options.h"
#include "printing.h"

#include <string>

namespace finescale::tools {

// Fills in what the options leave out from the tensors' shapes, and refuses sizes that contradict them.
Exit check_tensors(const CLI::App& command, OpOptions& options, const std::string& path, const Output& output);

}  // namespace finescale::tools
