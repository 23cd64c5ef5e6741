// The values of a Routing in host memory.
#pragma once

#include <finescale/grouped_gemm.h>
#include <finescale/status.h>

namespace finescale {

// invalid_argument with the position and the value of the first entry of index or gather that is bad (routing.h).
Status check_routing(const GroupedGemmProblem& problem);

}  // namespace finescale
