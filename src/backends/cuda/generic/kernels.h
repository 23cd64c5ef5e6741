// Rows of the CUDA kernels that need no special unit: the last row of every op on a GPU.
#pragma once

#include "backends/tables.h"

namespace finescale::cuda {

BackendTables generic_tables();

}  // namespace finescale::cuda
