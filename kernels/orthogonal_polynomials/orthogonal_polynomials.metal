#include "shared/elementwise.metal"

// Three-term recurrences (Abramowitz and Stegun, 22.7), upwards from degree 1:
//   (k + 1) P_{k+1} = (2k + 1) x P_k - k P_{k-1}        (k + 1) L_{k+1} = (2k + 1 - x) L_k - k L_{k-1}
// A NaN ends them: no further degree can change it. A degree above 2^24 gives one: half a second is 2^24 steps, macOS ends
// longer launches, and floats beyond 2^24 do not count by ones.
constant constexpr long HIGHEST_DEGREE = 1 << 24;

// The degree, or -1 for what is negative or no 64-bit integer.
inline long degree_of(float n) { return n > -1.0f && n < 9.2e18f ? long(n) : -1; }

struct legendre {
  static float first(float x) { return x; }
  static float factor(float x, float k) { return (k + k + 1.0f) * x; }
};

struct laguerre {
  static float first(float x) { return 1.0f - x; }
  static float factor(float x, float k) { return k + k + (1.0f - x); }
};

template <typename P> inline float recurrence(float x, long degree) {
  if (degree > HIGHEST_DEGREE) {
    return NAN;
  }
  float before = 1.0f, value = degree == 0 ? 1.0f : P::first(x);
  for (long k = 1; k < degree && !isnan(value); ++k) {
    const float next = (P::factor(x, float(k)) * value - float(k) * before) / float(k + 1);
    before = value;
    value = next;
  }
  return value;
}

struct special_legendre_polynomial_p {
  template <typename T> static T apply(T argument, T n, constant float*) {
    const float x = float(argument);
    const long degree = degree_of(float(n));
    if (degree < 0) {
      return T(0);
    }
    if (abs(x) == 1.0f) {
      return T(x > 0.0f || degree % 2 == 0 ? 1.0f : -1.0f);
    }
    return T(recurrence<legendre>(x, degree));
  }
};

struct special_laguerre_polynomial_l {
  template <typename T> static T apply(T argument, T n, constant float*) {
    const float x = float(argument);
    const long degree = degree_of(float(n));
    if (degree < 0) {
      return T(0);
    }
    return T(x == 0.0f ? 1.0f : recurrence<laguerre>(x, degree));
  }
};

BINARY_FLOATING(special_legendre_polynomial_p)
BINARY_FLOATING(special_laguerre_polynomial_l)
