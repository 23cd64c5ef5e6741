#include "backends/cpu/kernels.h"

namespace finescale::cpu {

BackendTables tables() { return {}; }

}  // namespace finescale::cpu
