// What differs between processor families and no compiler hides: CPUID, the floating-point control register, the pause
// hint. One implementation a family (machine_x86.cc, machine_any.cc), picked by CMake.
#pragma once

#include <cstdint>
#include <string>

namespace finescale::cpu {

std::uint64_t machine_isa();  // bits of Isa
std::string machine_model();  // what the chip calls itself; empty: it does not say
void pause();                 // inside a spin loop

// Round to nearest, subnormals kept (no FTZ, no DAZ), exceptions masked. Returns the control word to restore.
std::uint32_t enter_ieee_mode();
void restore_float_mode(std::uint32_t control);

// The floating-point mode of the contract for a scope of the calling thread, whatever the host has set. FloatEnvironment does the
// same for long double too; by way of <cfenv> it takes 0.48 us, this 0.03 us (AMD EPYC, 2026-11-29), and each task enters it.
class IeeeMode {
 public:
  IeeeMode() : saved_(enter_ieee_mode()) {}
  ~IeeeMode() { restore_float_mode(saved_); }
  IeeeMode(const IeeeMode&) = delete;
  IeeeMode& operator=(const IeeeMode&) = delete;

 private:
  std::uint32_t saved_;
};

}  // namespace finescale::cpu
