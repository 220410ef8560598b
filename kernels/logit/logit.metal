#include "shared/elementwise.metal"

// log(x / (1 - x)); with eps = p[0] >= 0, x is clamped to [eps, 1 - eps] first.
struct logit {
  template <typename T> static T apply(T value, constant float* p) {
    float x = float(value);
    if (p[0] >= 0.0f) {
      const float low = p[0], high = 1.0f - p[0];
      x = x < low ? low : x > high ? high : x;  // a NaN stays
    }
    return T(precise::log(x / (1.0f - x)));
  }
};

// The gradient over x (1 - x). Where x was clamped it is zero; without eps and outside of [0, 1] there is none.
struct logit_backward {
  template <typename T> static T apply(T gradient, T value, constant float* p) {
    const float x = float(value);
    const bool clamps = p[0] >= 0.0f;
    const float low = clamps ? p[0] : 0.0f;
    const float high = clamps ? 1.0f - p[0] : 1.0f;
    if (x < low || x > high) {
      return T(clamps ? 0.0f : NAN);
    }
    if (x == 0.0f || x == 1.0f) {
      return T(float(gradient) * INFINITY);
    }
    return T(float(gradient) / (x * (1.0f - x)));
  }
};

UNARY_FLOATING(logit)
BINARY_FLOATING(logit_backward)
