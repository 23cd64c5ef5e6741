#include "backends/cpu/machine.h"

#include <cfenv>

namespace finescale::cpu {

std::uint64_t machine_isa() { return 0; }

std::string machine_model() { return {}; }

void pause() {}

std::uint32_t enter_ieee_mode() {
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  return static_cast<std::uint32_t>(rounding);
}

void restore_float_mode(std::uint32_t control) { std::fesetround(static_cast<int>(control)); }

}  // namespace finescale::cpu
