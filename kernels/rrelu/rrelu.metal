#include "shared/elementwise.metal"

// Arguments: x and the slope that was drawn for it. A value above zero, or a NaN, stays and has slope 1.
struct rrelu_with_noise {
  template <typename T> static T apply(T x, T drawn, constant float*, thread T& noise) {
    const bool leaks = float(x) <= 0.0f;
    noise = leaks ? drawn : T(1);
    return leaks ? T(float(x) * float(drawn)) : x;
  }
};

BINARY_PAIR(rrelu_with_noise, float)
BINARY_PAIR(rrelu_with_noise, half)
BINARY_PAIR(rrelu_with_noise, bfloat)
