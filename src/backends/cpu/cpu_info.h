// What this CPU can run: instruction sets from CPUID and XGETBV, never from family and model, and the levels by name
// that cap them.
#pragma once

#include <finescale/device.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace finescale::cpu {

// The words that the instruction sets are read from: CPUID leaves, the enabled register state (XCR0), and whether the
// operating system granted AMX tiles to this process.
struct CpuWords {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;
  bool amx_granted = false;
};

// Bits of Isa that those words promise.
std::uint64_t isa_of(const CpuWords& words);

// A level by name and every instruction set that it lets through.
struct Level {
  std::string_view name;
  std::uint64_t isa;
};

constexpr std::uint64_t up_to(Isa highest) { return 2 * static_cast<std::uint64_t>(highest) - 1; }

inline constexpr Level kLevels[] = {
    {"portable", 0},
    {"avx2", up_to(Isa::avx2)},
    {"avx512", up_to(Isa::avx512)},
    {"avx512_vnni", up_to(Isa::avx512_vnni)},
    {"avx512_bf16", up_to(Isa::avx512_bf16)},
    {"avx512_fp16", up_to(Isa::avx512_fp16)},
    {"amx_bf16", up_to(Isa::amx_bf16)},
    {"amx_int8", up_to(Isa::amx_int8)},
    {"neon", static_cast<std::uint64_t>(Isa::neon)},
};

// The level of that name; empty: none, every set passes. invalid_argument: an unknown name; the sentence lists them all.
Result<std::uint64_t> level_mask(std::string_view name);

// Of the CPU that this runs on.
std::uint64_t detected_isa();
std::string cpu_model();
std::int32_t cpus_of_process();

}  // namespace finescale::cpu
