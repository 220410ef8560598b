#include "shared/elementwise.metal"

// Arguments: x and the value of the step at zero. A NaN is neither zero nor positive.
struct heaviside {
  template <typename T> static T apply(T x, T at_zero, constant float*) {
    return x == T(0) ? at_zero : T(x > T(0) ? 1 : 0);
  }
};

BINARY_FLOATING(heaviside)
BINARY(heaviside, long)
BINARY(heaviside, int)
BINARY(heaviside, short)
BINARY(heaviside, char)
BINARY(heaviside, uchar)
BINARY(heaviside, bool)
