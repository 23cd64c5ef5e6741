// The two loops behind roofline.h, per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finescale::cpu {

struct RooflineLoops {
  void (*read)(const std::byte* from, std::int64_t bytes);  // every cache line once; bytes: a multiple of 64
  void (*fma)(std::int64_t steps);
  double flops_per_step;
};

namespace portable {
extern const RooflineLoops kRoofline;
}
namespace avx2 {
extern const RooflineLoops kRoofline;
}

}  // namespace finescale::cpu
