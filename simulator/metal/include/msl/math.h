// metal_math, metal_common, metal_geometric and metal_relational.
//
// half and bfloat are computed in float and rounded once, except for functions that depend on their spacing. The bfloat
// overloads are templates that accept only bfloat, so that an int argument stays ambiguous, as in Metal.
#pragma once
#include "vector.h"

#ifdef MSL_APPLE  // Apple's functions are not defined for bfloat: an argument becomes a float
#define MSL_IF_BFLOAT class B, enable_if_t<is_same<B, void>::value, int> = 0
#else
#define MSL_IF_BFLOAT class B, enable_if_t<is_same<B, bfloat>::value, int> = 0
#endif
// Two integers convert to half as well as to float: such a call is ambiguous.
#define MSL_IF_MIXED(A, B) \
  class A, class B, enable_if_t<is_scalar<A>::value && is_scalar<B>::value && !is_same<A, B>::value && \
                                (is_floating_point<A>::value || is_floating_point<B>::value), int> = 0

#define MSL_UNARY(name, expression) \
  MSL_INLINE float name(float x) { return expression; } \
  MSL_INLINE half name(half h) { float x = h; return (half)(expression); } \
  template <MSL_IF_BFLOAT> MSL_INLINE B name(B h) { float x = h; return (bfloat)(expression); } \
  template <class T, int N> MSL_INLINE vec<T, N> name(vec<T, N> v) { \
    for (int i = 0; i < N; i++) v[i] = name((T)v[i]); \
    return v; \
  }
#define MSL_BINARY(name, expression) \
  MSL_INLINE float name(float x, float y) { return expression; } \
  MSL_INLINE half name(half a, half b) { float x = a, y = b; return (half)(expression); } \
  template <MSL_IF_BFLOAT> MSL_INLINE B name(B a, B b) { float x = a, y = b; return (bfloat)(expression); } \
  template <class T, int N> MSL_INLINE vec<T, N> name(vec<T, N> a, vec<T, N> b) { \
    for (int i = 0; i < N; i++) a[i] = name((T)a[i], (T)b[i]); \
    return a; \
  }
// These depend on the spacing of the type: not computed in float.
#define MSL_OF_TYPE_1(name) \
  MSL_INLINE float name(float x) { return metal::msl_##name(x); } \
  MSL_INLINE half name(half x) { return metal::msl_##name(x); } \
  template <MSL_IF_BFLOAT> MSL_INLINE B name(B x) { return metal::msl_##name(x); } \
  template <class T, int N> MSL_INLINE vec<T, N> name(vec<T, N> v) { \
    for (int i = 0; i < N; i++) v[i] = name((T)v[i]); \
    return v; \
  }
#define MSL_OF_TYPE_2(name) \
  MSL_INLINE float name(float x, float y) { return metal::msl_##name(x, y); } \
  MSL_INLINE half name(half x, half y) { return metal::msl_##name(x, y); } \
  template <MSL_IF_BFLOAT> MSL_INLINE B name(B x, B y) { return metal::msl_##name(x, y); } \
  template <class T, int N> MSL_INLINE vec<T, N> name(vec<T, N> a, vec<T, N> b) { \
    for (int i = 0; i < N; i++) a[i] = name((T)a[i], (T)b[i]); \
    return a; \
  }

#define MSL_FUNCTIONS \
  MSL_UNARY(sin, __builtin_sinf(x)) MSL_UNARY(cos, __builtin_cosf(x)) MSL_UNARY(tan, __builtin_tanf(x)) \
  MSL_UNARY(asin, __builtin_asinf(x)) MSL_UNARY(acos, __builtin_acosf(x)) MSL_UNARY(atan, __builtin_atanf(x)) \
  MSL_UNARY(sinh, __builtin_sinhf(x)) MSL_UNARY(cosh, __builtin_coshf(x)) MSL_UNARY(tanh, __builtin_tanhf(x)) \
  MSL_UNARY(asinh, __builtin_asinhf(x)) MSL_UNARY(acosh, __builtin_acoshf(x)) \
  MSL_UNARY(atanh, __builtin_atanhf(x)) \
  MSL_UNARY(exp, __builtin_expf(x)) MSL_UNARY(exp2, __builtin_exp2f(x)) MSL_UNARY(exp10, __builtin_exp10f(x)) \
  MSL_UNARY(log, __builtin_logf(x)) MSL_UNARY(log2, __builtin_log2f(x)) MSL_UNARY(log10, __builtin_log10f(x)) \
  MSL_UNARY(sqrt, __builtin_sqrtf(x)) MSL_UNARY(rsqrt, 1.0f / __builtin_sqrtf(x)) \
  MSL_UNARY(floor, __builtin_floorf(x)) MSL_UNARY(ceil, __builtin_ceilf(x)) MSL_UNARY(trunc, __builtin_truncf(x)) \
  MSL_UNARY(round, __builtin_roundf(x)) MSL_UNARY(rint, __builtin_rintf(x)) MSL_UNARY(fabs, __builtin_fabsf(x)) \
  MSL_UNARY(sinpi, metal::msl_sinpi(x)) MSL_UNARY(cospi, metal::msl_cospi(x)) \
  MSL_UNARY(tanpi, metal::msl_sinpi(x) / metal::msl_cospi(x)) \
  MSL_OF_TYPE_1(fract) \
  MSL_UNARY(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f)) \
  MSL_UNARY(sign, x > 0 ? 1.0f : (x < 0 ? -1.0f : 0.0f)) \
  MSL_BINARY(pow, __builtin_powf(x, y)) MSL_BINARY(powr, __builtin_powf(x, y)) \
  MSL_BINARY(atan2, __builtin_atan2f(x, y)) MSL_BINARY(fmod, __builtin_fmodf(x, y)) \
  MSL_BINARY(fmin, __builtin_fminf(x, y)) MSL_BINARY(fmax, __builtin_fmaxf(x, y)) \
  MSL_BINARY(copysign, __builtin_copysignf(x, y)) MSL_BINARY(fdim, __builtin_fdimf(x, y)) \
  MSL_BINARY(step, y < x ? 0.0f : 1.0f) MSL_OF_TYPE_2(nextafter) MSL_BINARY(divide, x / y)

namespace metal {
// Zeros and poles are exact, which multiples of a rounded pi would not give.
MSL_INLINE float msl_sinpi(float x) {
  float part = __builtin_remainderf(x, 2.0f);
  if (__builtin_fabsf(part) > 0.5f) part = __builtin_copysignf(1.0f, part) - part;
  return __builtin_sinf(M_PI_F * part);
}
MSL_INLINE float msl_cospi(float x) {
  return __builtin_sinf(M_PI_F * (0.5f - __builtin_fabsf(__builtin_remainderf(x, 2.0f))));
}

// The part above the floor, less than 1 in the type's own rounding.
template <class T> MSL_INLINE T msl_fract(T value, T below_one) {
  float x = value;
  if (__builtin_isinf(x)) return (T)0.0f;
  T part = (T)(x - __builtin_floorf(x));
  return part < below_one ? part : x != x ? value : below_one;
}
MSL_INLINE float msl_fract(float x) { return msl_fract(x, 0x1.fffffep-1f); }
MSL_INLINE half msl_fract(half x) { return msl_fract(x, (half)0x1.ffcp-1f); }
template <MSL_IF_BFLOAT> MSL_INLINE B msl_fract(B x) { return msl_fract(x, (bfloat)0x1.fep-1f); }

// The next number from x towards y, by the bits.
template <class Bits, class T> MSL_INLINE T msl_neighbour(T x, T y) {
  if ((float)x != (float)x || (float)x == (float)y) return (float)x != (float)x ? x : y;
  if ((float)y != (float)y) return y;
  const Bits sign = (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1));
  Bits bits = __builtin_bit_cast(Bits, x);
  if ((float)x == 0.0f) return __builtin_bit_cast(T, (Bits)((float)y > 0.0f ? 1 : sign | 1));
  bool away = ((float)y > (float)x) == !(bits & sign);
  return __builtin_bit_cast(T, (Bits)(away ? bits + 1 : bits - 1));
}
MSL_INLINE float msl_nextafter(float x, float y) { return msl_neighbour<unsigned int>(x, y); }
MSL_INLINE half msl_nextafter(half x, half y) { return msl_neighbour<unsigned short>(x, y); }
template <MSL_IF_BFLOAT> MSL_INLINE B msl_nextafter(B x, B y) { return msl_neighbour<unsigned short>(x, y); }

MSL_FUNCTIONS

// Mixed arithmetic arguments are converted to float, as in Metal.
#define MSL_MIXED(name) \
  template <MSL_IF_MIXED(A, B)> MSL_INLINE float name(A a, B b) { return name((float)a, (float)b); }
MSL_MIXED(fmin) MSL_MIXED(fmax) MSL_MIXED(pow) MSL_MIXED(powr) MSL_MIXED(fmod) MSL_MIXED(atan2) MSL_MIXED(copysign)
#undef MSL_MIXED
// A scalar next to a vector applies to each of its elements.
#define MSL_SPREAD_2(name) \
  template <class A, class B, class V = msl_met<A, B>> MSL_INLINE auto name(A a, B b) { return name(V(a), V(b)); }
#define MSL_SPREAD_3(name) \
  template <class A, class B, class C, class V = msl_met<A, B, C>> MSL_INLINE auto name(A a, B b, C c) { \
    return name(V(a), V(b), V(c)); \
  }
MSL_SPREAD_2(pow) MSL_SPREAD_2(powr) MSL_SPREAD_2(atan2) MSL_SPREAD_2(fmod) MSL_SPREAD_2(fmin) MSL_SPREAD_2(fmax)
MSL_SPREAD_2(copysign) MSL_SPREAD_2(fdim) MSL_SPREAD_2(step) MSL_SPREAD_2(nextafter) MSL_SPREAD_2(divide)

MSL_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MSL_INLINE half fma(half a, half b, half c) { return (half)__builtin_fmaf(a, b, c); }
template <MSL_IF_BFLOAT> MSL_INLINE B fma(B a, B b, B c) { return (bfloat)__builtin_fmaf(a, b, c); }
template <class T, int N> MSL_INLINE vec<T, N> fma(vec<T, N> a, vec<T, N> b, vec<T, N> c) {
  for (int i = 0; i < N; i++) a[i] = fma((T)a[i], (T)b[i], (T)c[i]);
  return a;
}
template <class T> MSL_INLINE T mad(T a, T b, T c) { return a * b + c; }
MSL_SPREAD_3(fma) MSL_SPREAD_3(mad)

MSL_INLINE float ldexp(float a, int e) { return __builtin_ldexpf(a, e); }
MSL_INLINE half ldexp(half a, int e) { return (half)__builtin_ldexpf(a, e); }
MSL_INLINE int ilogb(float x) { return __builtin_ilogbf(x); }
MSL_INLINE int ilogb(half x) { return __builtin_ilogbf(x); }
MSL_INLINE float frexp(float a, thread int& e) { int k; float r = __builtin_frexpf(a, &k); e = k; return r; }
MSL_INLINE half frexp(half a, thread int& e) { return (half)frexp((float)a, e); }
MSL_INLINE float modf(float a, thread float& whole) { whole = __builtin_truncf(a); return __builtin_copysignf(__builtin_isinf(a) ? 0.0f : a - whole, a); }
MSL_INLINE half modf(half a, thread half& whole) { float w; float r = modf((float)a, w); whole = (half)w; return (half)r; }
MSL_INLINE float sincos(float x, thread float& c) { c = __builtin_cosf(x); return __builtin_sinf(x); }
MSL_INLINE half sincos(half x, thread half& c) { c = (half)__builtin_cosf(x); return (half)__builtin_sinf(x); }
template <class T, int N> MSL_INLINE vec<T, N> sincos(vec<T, N> x, thread vec<T, N>& c) { c = cos(x); return sin(x); }
template <class T, int N> MSL_INLINE vec<T, N> modf(vec<T, N> x, thread vec<T, N>& whole) {
  for (int i = 0; i < N; i++) {
    T part;
    x[i] = modf((T)x[i], part);
    whole[i] = part;
  }
  return x;
}
template <class T, int N> MSL_INLINE vec<T, N> frexp(vec<T, N> x, thread vec<int, N>& e) {
  for (int i = 0; i < N; i++) {
    int exponent;
    x[i] = frexp((T)x[i], exponent);
    e[i] = exponent;
  }
  return x;
}
template <class T, int N> MSL_INLINE vec<T, N> ldexp(vec<T, N> x, vec<int, N> e) {
  for (int i = 0; i < N; i++) x[i] = ldexp((T)x[i], (int)e[i]);
  return x;
}
template <class T, int N> MSL_INLINE vec<int, N> ilogb(vec<T, N> x) {
  vec<int, N> r;
  for (int i = 0; i < N; i++) r[i] = ilogb((T)x[i]);
  return r;
}

MSL_INLINE float mix(float a, float b, float t) { return a + (b - a) * t; }
MSL_INLINE half mix(half a, half b, half t) { return a + (b - a) * t; }
template <class T, int N> MSL_INLINE vec<T, N> mix(vec<T, N> a, vec<T, N> b, vec<T, N> t) { return a + (b - a) * t; }
MSL_INLINE float smoothstep(float a, float b, float x) { float t = saturate((x - a) / (b - a)); return t * t * (3 - 2 * t); }
MSL_INLINE half smoothstep(half a, half b, half x) { half t = saturate((x - a) / (b - a)); return t * t * (3 - 2 * t); }
template <class T, int N> MSL_INLINE vec<T, N> smoothstep(vec<T, N> a, vec<T, N> b, vec<T, N> x) {
  for (int i = 0; i < N; i++) x[i] = smoothstep((T)a[i], (T)b[i], (T)x[i]);
  return x;
}
MSL_SPREAD_3(mix) MSL_SPREAD_3(smoothstep)

// ---- relational
#define MSL_PREDICATE(name, expression) \
  MSL_INLINE bool name(float x) { return expression; } \
  MSL_INLINE bool name(half h) { float x = h; return expression; } \
  template <MSL_IF_BFLOAT> MSL_INLINE bool name(B h) { float x = h; return expression; } \
  template <class T, int N> MSL_INLINE vec<bool, N> name(vec<T, N> v) { \
    vec<bool, N> r; \
    for (int i = 0; i < N; i++) r[i] = name((T)v[i]); \
    return r; \
  }
MSL_PREDICATE(isnan, x != x) MSL_PREDICATE(isinf, __builtin_isinf(x)) MSL_PREDICATE(isfinite, __builtin_isfinite(x))
MSL_PREDICATE(isnormal, __builtin_isnormal(x)) MSL_PREDICATE(signbit, __builtin_signbit(x))
#undef MSL_PREDICATE
template <class A> MSL_INLINE auto isunordered(A a, A b) { return a != a || b != b; }
template <class A> MSL_INLINE auto isordered(A a, A b) { return a == a && b == b; }
MSL_INLINE bool any(bool b) { return b; }
MSL_INLINE bool all(bool b) { return b; }
template <class T, int N> MSL_INLINE bool any(vec<T, N> v) {
  bool r = false;
  for (int i = 0; i < N; i++) r |= v[i] != 0;
  return r;
}
template <class T, int N> MSL_INLINE bool all(vec<T, N> v) {
  bool r = true;
  for (int i = 0; i < N; i++) r &= v[i] != 0;
  return r;
}

// ---- min, max, clamp, select: one overload a scalar type, so that mixed arguments are ambiguous as in Metal
#define MSL_ORDER(t, lesser, greater) \
  constexpr MSL_INLINE t min(t a, t b) { return lesser; } \
  constexpr MSL_INLINE t max(t a, t b) { return greater; } \
  constexpr MSL_INLINE t clamp(t x, t lo, t hi) { return min(max(x, lo), hi); } \
  constexpr MSL_INLINE t select(t a, t b, bool c) { return c ? b : a; } \
  template <int N> MSL_INLINE vec<t, N> min(vec<t, N> a, vec<t, N> b) { \
    for (int i = 0; i < N; i++) a[i] = min((t)a[i], (t)b[i]); \
    return a; \
  } \
  template <int N> MSL_INLINE vec<t, N> max(vec<t, N> a, vec<t, N> b) { \
    for (int i = 0; i < N; i++) a[i] = max((t)a[i], (t)b[i]); \
    return a; \
  } \
  template <int N> MSL_INLINE vec<t, N> clamp(vec<t, N> x, vec<t, N> lo, vec<t, N> hi) { return min(max(x, lo), hi); }
#define MSL_INTEGER_ORDER(t) MSL_ORDER(t, b < a ? b : a, a < b ? b : a)
// If one argument is NaN, the result is the other, as with fmin and fmax.
#define MSL_FLOAT_ORDER(t) MSL_ORDER(t, a != a ? b : (b < a ? b : a), a != a ? b : (a < b ? b : a))
MSL_EACH_INTEGER(MSL_INTEGER_ORDER)
MSL_FLOAT_ORDER(float)
MSL_FLOAT_ORDER(half)
#undef MSL_ORDER
#undef MSL_INTEGER_ORDER
#undef MSL_FLOAT_ORDER
MSL_INLINE bool min(bool a, bool b) { return a && b; }
MSL_INLINE bool max(bool a, bool b) { return a || b; }
MSL_INLINE bool select(bool a, bool b, bool c) { return c ? b : a; }
template <MSL_IF_BFLOAT> MSL_INLINE B min(B a, B b) { return a != a ? b : (b < a ? b : a); }
template <MSL_IF_BFLOAT> MSL_INLINE B max(B a, B b) { return a != a ? b : (a < b ? b : a); }
template <MSL_IF_BFLOAT> MSL_INLINE B clamp(B x, B lo, B hi) { return min(max(x, lo), hi); }
template <class B, enable_if_t<is_same<B, bfloat>::value, int> = 0> MSL_INLINE B select(B a, B b, bool c) {
  return c ? b : a;
}
template <int N> MSL_INLINE vec<bfloat, N> min(vec<bfloat, N> a, vec<bfloat, N> b) { return fmin(a, b); }
template <int N> MSL_INLINE vec<bfloat, N> max(vec<bfloat, N> a, vec<bfloat, N> b) { return fmax(a, b); }
template <int N> MSL_INLINE vec<bfloat, N> clamp(vec<bfloat, N> x, vec<bfloat, N> lo, vec<bfloat, N> hi) {
  return min(max(x, lo), hi);
}
MSL_SPREAD_2(min) MSL_SPREAD_2(max) MSL_SPREAD_3(clamp)
template <class T> MSL_INLINE T min3(T a, T b, T c) { return min(min(a, b), c); }
template <class T> MSL_INLINE T max3(T a, T b, T c) { return max(max(a, b), c); }
template <class T> MSL_INLINE T fmin3(T a, T b, T c) { return fmin(fmin(a, b), c); }
template <class T> MSL_INLINE T fmax3(T a, T b, T c) { return fmax(fmax(a, b), c); }
template <class T> MSL_INLINE T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> MSL_INLINE T fmedian3(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }
MSL_SPREAD_3(min3) MSL_SPREAD_3(max3) MSL_SPREAD_3(median3)
MSL_SPREAD_3(fmin3) MSL_SPREAD_3(fmax3) MSL_SPREAD_3(fmedian3)
template <class T, int N, class C> MSL_INLINE vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<C, N> c) {
  for (int i = 0; i < N; i++) a[i] = c[i] ? b[i] : a[i];
  return a;
}
template <class T, int N> MSL_INLINE vec<T, N> select(vec<T, N> a, vec<T, N> b, bool c) { return c ? b : a; }
template <class A, class B, class C, class V = msl_met<A, B>> MSL_INLINE auto select(A a, B b, C c) {
  return select(V(a), V(b), c);
}

// ---- integers
#define MSL_SIGNED_ABS(t) constexpr MSL_INLINE t abs(t x) { return x < 0 ? (t)-x : x; }
#define MSL_UNSIGNED_ABS(t) constexpr MSL_INLINE t abs(t x) { return x; }
MSL_EACH_SIGNED(MSL_SIGNED_ABS) MSL_EACH_UNSIGNED(MSL_UNSIGNED_ABS)
#undef MSL_SIGNED_ABS
#undef MSL_UNSIGNED_ABS
MSL_INLINE float abs(float x) { return __builtin_fabsf(x); }
MSL_INLINE half abs(half x) { return (half)__builtin_fabsf(x); }
template <MSL_IF_BFLOAT> MSL_INLINE B abs(B x) { return (bfloat)__builtin_fabsf(x); }
template <class T, int N> MSL_INLINE vec<T, N> abs(vec<T, N> v) {
  for (int i = 0; i < N; i++) v[i] = abs((T)v[i]);
  return v;
}

// ---- geometry
#define MSL_NO_BFLOAT_GEOMETRY \
  MSL_REFUSE((is_same<T, bfloat>::value), "geometric functions are not defined for bfloat: convert to float" \
             " (MSL specification, Geometric Functions)")
template <class T, int N> MSL_INLINE T dot(vec<T, N> a, vec<T, N> b) {
  MSL_NO_BFLOAT_GEOMETRY;
  T s = 0;
  for (int i = 0; i < N; i++) s += a[i] * b[i];
  return s;
}
template <class T, int N> MSL_INLINE T length_squared(vec<T, N> a) { return dot(a, a); }
template <class T, int N> MSL_INLINE T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> MSL_INLINE T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> MSL_INLINE T distance_squared(vec<T, N> a, vec<T, N> b) { return dot(a - b, a - b); }
template <class T, int N> MSL_INLINE vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <class T> MSL_INLINE vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  MSL_NO_BFLOAT_GEOMETRY;
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

template <class T, int N> MSL_INLINE vec<T, N> faceforward(vec<T, N> n, vec<T, N> incident, vec<T, N> reference) {
  return dot(reference, incident) < (T)0 ? n : -n;
}
template <class T, int N> MSL_INLINE vec<T, N> reflect(vec<T, N> incident, vec<T, N> n) {
  return incident - n * ((T)2 * dot(n, incident));
}
template <class T, int N> MSL_INLINE vec<T, N> refract(vec<T, N> incident, vec<T, N> n, T eta) {
  const T cosine = dot(n, incident), k = (T)1 - eta * eta * ((T)1 - cosine * cosine);
  return k < (T)0 ? vec<T, N>((T)0) : incident * eta - n * (eta * cosine + sqrt(k));
}

// ---- precise:: and fast:: have the same functions; the host computes both precisely
#undef MSL_UNARY
#undef MSL_BINARY
// Apple declares them for float, to which a whole number converts.
#define MSL_UNARY(name, expression) \
  using metal::name; \
  template <class T, enable_if_t<is_integral<T>::value, int> = 0> MSL_INLINE float name(T x) { return name((float)x); }
#define MSL_BINARY(name, expression) using metal::name;
#undef MSL_OF_TYPE_1
#undef MSL_OF_TYPE_2
#define MSL_OF_TYPE_1(name) using metal::name;
#define MSL_OF_TYPE_2(name) using metal::name;
#define MSL_VARIANT(variant) \
  namespace variant { \
  using namespace metal; \
  MSL_FUNCTIONS \
  using metal::fma; \
  using metal::min; \
  using metal::max; \
  using metal::clamp; \
  using metal::abs; \
  using metal::isnan; \
  using metal::isinf; \
  using metal::frexp; \
  using metal::ldexp; \
  using metal::modf; \
  using metal::sincos; \
  using metal::normalize; \
  using metal::length; \
  using metal::distance; \
  using metal::dot; \
  using metal::mix; \
  using metal::smoothstep; \
  using metal::fmin3; \
  using metal::fmax3; \
  using metal::fmedian3; \
  }
MSL_VARIANT(precise)
MSL_VARIANT(fast)
#undef MSL_VARIANT
#undef MSL_UNARY
#undef MSL_BINARY
#undef MSL_OF_TYPE_1
#undef MSL_OF_TYPE_2
#undef MSL_FUNCTIONS
#undef MSL_SPREAD_2
#undef MSL_SPREAD_3
} // namespace metal
