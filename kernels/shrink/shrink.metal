#include "shared/elementwise.metal"

// p[0] is lambda. A NaN compares false with everything and so comes through x * 0.
struct softshrink {
  template <typename T> static T apply(T value, constant float* p) {
    const float x = float(value);
    return T(x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : x * 0.0f);
  }
};

// Arguments: the gradient of the output, the input.
struct softshrink_backward {
  template <typename T> static T apply(T gradient, T value, constant float* p) {
    const float x = float(value);
    return x >= -p[0] && x <= p[0] ? T(0) : gradient;
  }
};

UNARY_FLOATING(softshrink)
BINARY_FLOATING(softshrink_backward)
