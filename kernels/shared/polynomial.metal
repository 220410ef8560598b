// Polynomials with the coefficient of the highest power first.
#include <metal_stdlib>
using namespace metal;

template <uint N> inline float polynomial(constant float (&c)[N], float x) {
  float sum = c[0];
  for (uint k = 1; k < N; ++k) {
    sum = fma(sum, x, c[k]);
  }
  return sum;
}

// log(1 + y) for -1/2 <= y <= 1/2 as 2 artanh(y / (2 + y)); Metal has no log1p.
inline float log1p_near_zero(float y) {
  const float s = y / (2.0f + y);
  const float t = s * s;
  const float series =
      fma(t,
          fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.0f / 15, 1.0f / 13), 1.0f / 11), 1.0f / 9), 1.0f / 7), 1.0f / 5),
              1.0f / 3),
          1.0f);
  return 2.0f * s * series;
}
