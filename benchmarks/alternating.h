// Timing on a machine that others use too: short bursts of a kernel and of its limit in turn, so that both see the same
// neighbours. A share is the median of the ratios of neighbouring bursts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <vector>

namespace finescale::bench {

// Of one thread the CPU's time, which leaves out what neighbours take; of several the time that passes.
enum class Clock { thread_cpu, wall };

template <class Body>
double seconds(Clock clock, const Body& body) {
  const auto now = [clock] {
    timespec time{};
    clock_gettime(clock == Clock::thread_cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Shares {
  double rate = 0, limit = 0;           // medians
  double share = 0, low = 0, high = 0;  // of the ratios: median, smallest, largest
};

// rate() and limit() each run one burst and return work a second.
template <class Rate, class Limit>
Shares alternate(int rounds, const Rate& rate, const Limit& limit) {
  std::vector<double> rates, limits, ratios;
  rate();
  limit();
  for (int round = 0; round < rounds; ++round) {
    limits.push_back(limit());
    rates.push_back(rate());
    ratios.push_back(rates.back() / limits.back());
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return {median(rates), median(limits), median(ratios), *low, *high};
}

}  // namespace finescale::bench
