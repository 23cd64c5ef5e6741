#include "backends/cuda/generic/kernels.h"

namespace finescale::cuda {

BackendTables generic_tables() { return {}; }

}  // namespace finescale::cuda
