// Where the compiler has no AVX2 the tables stand empty: no device there has the bit, so no row that names it is taken.
#include "backends/cpu/kernels/leaves.h"
#include "backends/cpu/kernels/roofline_loops.h"

namespace finescale::cpu::avx2 {

const Leaves kLeaves{};
const RooflineLoops kRoofline{};

}  // namespace finescale::cpu::avx2
