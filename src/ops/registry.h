// The one list of backends: which rows an op walks, in which order.
#pragma once

#include <finescale/kernel.h>

namespace finescale {

// Every row of the op in this build: fastest backend first, the reference last.
// Defined for the six problems.
template <class Problem>
KernelTables<Problem> kernel_tables();

}  // namespace finescale
