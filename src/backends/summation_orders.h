// Ids of the summation orders that kernels declare (Accumulation::order): two kernels with equal ids give equal bits for the
// same row of a problem. One list, so that no id is used twice.
#pragma once

#include <cstdint>

namespace finescale {

inline constexpr std::int32_t kOrderAscending = 1;          // acc += ((a * sa) * b) * sb for k = 0, 1, 2 ... (the reference)
inline constexpr std::int32_t kOrderAscendingFma = 2;       // acc = fma(a * sa, b * sb, acc) for k = 0, 1, 2 ...
inline constexpr std::int32_t kOrderAscendingProducts = 3;  // acc += (a * sa) * (b * sb) for k = 0, 1, 2 ...

}  // namespace finescale
