#include "backends/cpu/cpu_info.h"

#include "backends/cpu/machine.h"

#include <fmt/ranges.h>

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

namespace finescale::cpu {
namespace {

constexpr bool bit(std::uint64_t word, int index) { return (word >> index & 1) != 0; }
constexpr bool all(std::uint64_t word, std::uint64_t mask) { return (word & mask) == mask; }

constexpr std::uint64_t kXmmYmm = 0x6, kZmm = 0xE6, kTiles = 0x60000;  // XCR0 state components (Intel SDM vol. 1, 13.3)

}  // namespace

// Bit positions: Intel SDM vol. 2, CPUID.
std::uint64_t isa_of(const CpuWords& words) {
  std::uint64_t isa = 0;
  const auto add = [&](Isa set, bool present) { isa |= present ? static_cast<std::uint64_t>(set) : 0; };
  const bool osxsave = bit(words.leaf1_ecx, 27), ymm = osxsave && all(words.xcr0, kXmmYmm), zmm = osxsave && all(words.xcr0, kZmm);
  const bool fma = bit(words.leaf1_ecx, 12), f16c = bit(words.leaf1_ecx, 29), avx2 = ymm && fma && f16c && bit(words.leaf7_ebx, 5);
  const bool f = bit(words.leaf7_ebx, 16), dq = bit(words.leaf7_ebx, 17), bw = bit(words.leaf7_ebx, 30), vl = bit(words.leaf7_ebx, 31);
  const bool avx512 = avx2 && zmm && f && dq && bw && vl;
  const bool tiles = osxsave && all(words.xcr0, kTiles) && words.amx_granted && bit(words.leaf7_edx, 24);
  add(Isa::avx2, avx2);
  add(Isa::avx512, avx512);
  add(Isa::avx512_vnni, avx512 && bit(words.leaf7_ecx, 11) && bit(words.leaf7_ecx, 1));
  add(Isa::avx512_bf16, avx512 && bit(words.leaf7_1_eax, 5));
  add(Isa::avx512_fp16, avx512 && bit(words.leaf7_edx, 23));
  add(Isa::amx_bf16, tiles && bit(words.leaf7_edx, 22));
  add(Isa::amx_int8, tiles && bit(words.leaf7_edx, 25));
  return isa;
}

Result<std::uint64_t> level_mask(std::string_view name) {
  if (name.empty()) return ~std::uint64_t{0};
  std::vector<std::string_view> names;
  for (const Level& level : kLevels) {
    if (level.name == name) return level.isa;
    names.push_back(level.name);
  }
  return invalid_argument(fmt::format("cpu_level = \"{}\": must be one of {}", name, fmt::join(names, ", ")));
}

std::uint64_t detected_isa() { return machine_isa(); }

std::string cpu_model() {
  std::string model = machine_model();
  return model.empty() ? "unknown CPU" : model;
}

std::int32_t cpus_of_process() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<std::int32_t>(std::thread::hardware_concurrency()), 1);
}

}  // namespace finescale::cpu
