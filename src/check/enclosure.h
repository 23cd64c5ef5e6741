// Enclosure: an interval that surely holds an exact value. Sums and products are rounded outward by one unit in the last
// place of long double (64 bits or more), activations by 2^-44 relative.
#pragma once

#include "check/fixed_point.h"

#include <finescale/epilogue.h>

namespace finescale {

struct Enclosure {
  long double low = 0, high = 0;

  long double magnitude() const;  // the largest |value|
  long double middle() const { return low / 2 + high / 2; }
};

Enclosure enclose(const FixedPoint& value);
Enclosure operator+(const Enclosure& x, const Enclosure& y);
Enclosure operator*(const Enclosure& x, const Enclosure& y);

// The exact activation over an interval of finite z.
Enclosure activate(Activation activation, const Enclosure& z);

// L: the largest |activation'| over an interval of z.
long double activation_slope(Activation activation, const Enclosure& z);

// e_act: how far an FP32 evaluation of the activation may be off for z in the interval (docs/numerics.md).
long double activation_slack(Activation activation, const Enclosure& z, const Enclosure& value);

// The doubles that enclose the interval.
double lower_double(long double value);
double upper_double(long double value);

}  // namespace finescale
