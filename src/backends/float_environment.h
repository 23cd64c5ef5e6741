// The contract's arithmetic needs rounding to nearest and subnormals kept. A host may have changed either for its own thread;
// this object sets the default environment for its life and puts the host's back.
#pragma once

#include <cfenv>

namespace finescale {

// In every thread that computes, around the arithmetic. FE_DFL_ENV on x86-64 clears flush-to-zero and denormals-are-zero too, and
// gives long double, which the oracle computes in, its 64 bits.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&host_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&host_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t host_;
};

}  // namespace finescale
