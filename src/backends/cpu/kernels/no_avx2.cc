// Where the compiler has no AVX2 the table stands empty: no device there has the bit, so no row that names it is taken.
#include "backends/cpu/kernels/leaves.h"

namespace finescale::cpu::avx2 {

const Leaves kLeaves{};

}  // namespace finescale::cpu::avx2
