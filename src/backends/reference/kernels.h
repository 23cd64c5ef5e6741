// The reference backend's rows: plain loops, the last row of every op on a CPU, and the specification of all others.
#pragma once

#include "backends/tables.h"

namespace finescale::reference {

BackendTables tables();

}  // namespace finescale::reference
