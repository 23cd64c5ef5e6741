#include "backends/cpu/cpu_info.h"
#include "backends/cpu/machine.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cstring>

namespace finescale::cpu {
namespace {

std::uint64_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

// Linux hands out the AMX tile state on request (arch_prctl ARCH_REQ_XCOMP_PERM, state component 18).
bool request_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuWords read_words() {
  CpuWords words;
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) words.leaf1_ecx = ecx;
  std::uint32_t subleaves = 0;
  if (__get_cpuid_count(7, 0, &subleaves, &ebx, &ecx, &edx) != 0) {
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
    words.leaf7_edx = edx;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) words.leaf7_1_eax = eax;
  }
  if ((words.leaf1_ecx >> 27 & 1) != 0) words.xcr0 = read_xcr0();
  if ((words.leaf7_edx >> 24 & 1) != 0) words.amx_granted = request_amx();
  return words;
}

constexpr std::uint32_t kMasked = 0x1F80;  // MXCSR: every exception masked, round to nearest, no FTZ, no DAZ

}  // namespace

std::uint64_t machine_isa() { return isa_of(read_words()); }

std::string machine_model() {
  std::uint32_t words[12] = {};
  for (std::uint32_t leaf = 0; leaf < 3; ++leaf) {
    std::uint32_t* part = words + 4 * leaf;
    if (__get_cpuid(0x80000002 + leaf, part, part + 1, part + 2, part + 3) == 0) return {};
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string model = text;
  model.erase(0, model.find_first_not_of(' '));
  model.erase(model.find_last_not_of(' ') + 1);
  return model;
}

void pause() { _mm_pause(); }

std::uint32_t enter_ieee_mode() {
  const std::uint32_t control = _mm_getcsr();
  _mm_setcsr(kMasked);
  return control;
}

void restore_float_mode(std::uint32_t control) { _mm_setcsr(control); }

}  // namespace finescale::cpu
