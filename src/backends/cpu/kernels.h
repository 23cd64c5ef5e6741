// The CPU backend's rows, best first: leaves compiled for an instruction set, then portable ones.
#pragma once

#include "backends/tables.h"

namespace finescale::cpu {

BackendTables tables();

}  // namespace finescale::cpu
