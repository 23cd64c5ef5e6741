// What this machine can do at most, measured on the spot: the yardsticks of `finescale bench` and of benchmarks/.
//
//   read_rate   bytes a second of a plain loop that reads memory once (128 MiB and more: DRAM)
//   fma_rate    floating-point operations a second of FP32 FMAs on independent registers, with the widest instruction set
//               that a kernel here is compiled for and this CPU has
#pragma once

#include <cstdint>
#include <span>

namespace finescale::cpu {

// Of a buffer of that many bytes; median of five passes.
double read_rate(std::int64_t bytes, std::int32_t threads);
// Of the given memory, one pass: to alternate with the kernel that is measured.
double read_rate(std::span<const std::byte> memory, std::int32_t threads);
double fma_rate(std::int32_t threads);

}  // namespace finescale::cpu
