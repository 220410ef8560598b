// Real and complex numbers under one name: float, and float2 as real and imaginary part.
#include <metal_stdlib>
using namespace metal;

inline float times(float a, float b) { return a * b; }
inline float2 times(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

inline float conjugate(float a) { return a; }
inline float2 conjugate(float2 a) { return float2(a.x, -a.y); }

// |re| + |im|, by which LAPACK chooses pivots.
inline float size_of(float a) { return abs(a); }
inline float size_of(float2 a) { return abs(a.x) + abs(a.y); }

// The larger of |re| and |im|: finite where both are, NaN where one is.
inline float larger_part(float a) { return abs(a); }
inline float larger_part(float2 a) {
  const float re = abs(a.x), im = abs(a.y);
  return re >= im || re != re ? re : im;
}

inline float modulus(float a) { return abs(a); }
inline float2 real_only(float2 a) { return float2(a.x, 0.0f); }
inline float real_only(float a) { return a; }
inline float modulus(float2 a) {
  const float large = max(abs(a.x), abs(a.y)), small = min(abs(a.x), abs(a.y));
  const float ratio = small / large;
  return large == 0.0f ? 0.0f : large * precise::sqrt(fma(ratio, ratio, 1.0f));
}

// a / b; the complex one scales by the larger part of b, so that nothing overflows on the way.
inline float over(float a, float b) { return a / b; }
inline float2 over(float2 a, float2 b) {
  if (abs(b.x) >= abs(b.y)) {
    const float ratio = b.y / b.x, scale = 1.0f / fma(b.y, ratio, b.x);
    return float2(fma(a.y, ratio, a.x), fma(-a.x, ratio, a.y)) * scale;
  }
  const float ratio = b.x / b.y, scale = 1.0f / fma(b.x, ratio, b.y);
  return float2(fma(a.x, ratio, a.y), fma(a.y, ratio, -a.x)) * scale;
}

template <typename T> inline T number(float x);
template <> inline float number<float>(float x) { return x; }
template <> inline float2 number<float2>(float x) { return float2(x, 0.0f); }

inline float simd_total(float a) { return simd_sum(a); }
inline float2 simd_total(float2 a) { return float2(simd_sum(a.x), simd_sum(a.y)); }
