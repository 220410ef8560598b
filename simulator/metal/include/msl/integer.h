// metal_integer: each function for scalars and for vectors of every integer type.
#pragma once
#include "math.h"

namespace metal {
// The integers in which a product of two T does not overflow.
template <class T> using msl_wide =
    conditional_t<sizeof(T) == 8, conditional_t<is_signed<T>::value, __int128, unsigned __int128>,
                  conditional_t<is_signed<T>::value, long, ulong>>;
template <class T> MSL_INLINE T msl_mulhi(T a, T b) { return (T)(((msl_wide<T>)a * b) >> (sizeof(T) * 8)); }
template <class T> MSL_INLINE T msl_madhi(T a, T b, T c) { return (T)(msl_mulhi(a, b) + c); }
template <class T> MSL_INLINE make_unsigned_t<T> msl_absdiff(T a, T b) {
  typedef make_unsigned_t<T> U;
  return (U)(a > b ? (U)a - (U)b : (U)b - (U)a);
}
template <class T> MSL_INLINE T msl_popcount(T x) { return (T)__builtin_popcountl((ulong)(make_unsigned_t<T>)x); }
template <class T> MSL_INLINE T msl_clz(T x) {
  ulong u = (make_unsigned_t<T>)x;
  return (T)(u == 0 ? sizeof(T) * 8 : __builtin_clzl(u) - (64 - sizeof(T) * 8));
}
template <class T> MSL_INLINE T msl_ctz(T x) {
  ulong u = (make_unsigned_t<T>)x;
  return (T)(u == 0 ? sizeof(T) * 8 : __builtin_ctzl(u));
}
template <class T> MSL_INLINE T msl_rotate(T x, T n) {
  typedef make_unsigned_t<T> U;
  constexpr uint bits = sizeof(T) * 8;
  uint s = (uint)n & (bits - 1);
  return s ? (T)(U)(((U)x << s) | ((U)x >> (bits - s))) : x;
}
template <class T> MSL_INLINE T msl_reverse_bits(T x) {
  typedef make_unsigned_t<T> U;
  constexpr int bits = sizeof(T) * 8;
  U r = 0;
  for (int i = 0; i < bits; i++)
    if (((U)x >> i) & 1) r |= (U)((U)1 << (bits - 1 - i));
  return (T)r;
}
template <class T> MSL_INLINE T msl_extract_bits(T x, uint offset, uint count) {
  constexpr uint bits = sizeof(T) * 8;
  return count == 0 ? (T)0 : (T)((T)((make_unsigned_t<T>)x << (bits - count - offset)) >> (bits - count));
}
template <class T> MSL_INLINE T msl_insert_bits(T base, T insert, uint offset, uint count) {
  typedef make_unsigned_t<T> U;
  U mask = count >= sizeof(T) * 8 ? (U)-1 : (U)((((U)1 << count) - 1) << offset);
  return (T)(((U)base & ~mask) | (((U)insert << offset) & mask));
}
template <class T> MSL_INLINE T msl_addsat(T a, T b) {
  T r;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return is_signed<T>::value && a < 0 ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T> MSL_INLINE T msl_subsat(T a, T b) {
  T r;
  if (!__builtin_sub_overflow(a, b, &r)) return r;
  return !is_signed<T>::value || a < 0 ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T> MSL_INLINE T msl_madsat(T a, T b, T c) {
  if constexpr (is_signed<T>::value) {
    const __int128 exact = (__int128)a * b + c;
    if (exact < numeric_limits<T>::min()) return numeric_limits<T>::min();
    return exact > numeric_limits<T>::max() ? numeric_limits<T>::max() : (T)exact;
  } else {
    const unsigned __int128 exact = (unsigned __int128)a * b + c;
    return exact > numeric_limits<T>::max() ? numeric_limits<T>::max() : (T)exact;
  }
}
template <class T> MSL_INLINE T msl_hadd(T a, T b) { return (T)((a & b) + ((a ^ b) >> 1)); }
template <class T> MSL_INLINE T msl_rhadd(T a, T b) { return (T)((a | b) - ((a ^ b) >> 1)); }
template <class T> MSL_INLINE T msl_mul24(T a, T b) { return a * b; }
template <class T> MSL_INLINE T msl_mad24(T a, T b, T c) { return a * b + c; }

#define MSL_OF_1(name, t) \
  MSL_INLINE t name(t x) { return msl_##name(x); } \
  template <int N> MSL_INLINE vec<t, N> name(vec<t, N> v) { \
    for (int i = 0; i < N; i++) v[i] = msl_##name((t)v[i]); \
    return v; \
  }
#define MSL_OF_2(name, t) \
  MSL_INLINE t name(t x, t y) { return msl_##name(x, y); } \
  template <int N> MSL_INLINE vec<t, N> name(vec<t, N> x, vec<t, N> y) { \
    for (int i = 0; i < N; i++) x[i] = msl_##name((t)x[i], (t)y[i]); \
    return x; \
  }
#define MSL_OF_3(name, t) \
  MSL_INLINE t name(t x, t y, t z) { return msl_##name(x, y, z); } \
  template <int N> MSL_INLINE vec<t, N> name(vec<t, N> x, vec<t, N> y, vec<t, N> z) { \
    for (int i = 0; i < N; i++) x[i] = msl_##name((t)x[i], (t)y[i], (t)z[i]); \
    return x; \
  }
#define MSL_OF_INTEGER(t) \
  MSL_OF_1(popcount, t) MSL_OF_1(clz, t) MSL_OF_1(ctz, t) MSL_OF_1(reverse_bits, t) \
  MSL_OF_2(rotate, t) MSL_OF_2(addsat, t) MSL_OF_2(subsat, t) MSL_OF_2(hadd, t) MSL_OF_2(rhadd, t) \
  MSL_OF_2(mulhi, t) MSL_OF_3(madhi, t) MSL_OF_3(madsat, t) \
  MSL_INLINE make_unsigned_t<t> absdiff(t x, t y) { return msl_absdiff(x, y); } \
  template <int N> MSL_INLINE vec<make_unsigned_t<t>, N> absdiff(vec<t, N> x, vec<t, N> y) { \
    vec<make_unsigned_t<t>, N> r; \
    for (int i = 0; i < N; i++) r[i] = msl_absdiff((t)x[i], (t)y[i]); \
    return r; \
  } \
  MSL_INLINE t extract_bits(t x, uint offset, uint count) { return msl_extract_bits(x, offset, count); } \
  template <int N> MSL_INLINE vec<t, N> extract_bits(vec<t, N> x, uint offset, uint count) { \
    for (int i = 0; i < N; i++) x[i] = msl_extract_bits((t)x[i], offset, count); \
    return x; \
  } \
  MSL_INLINE t insert_bits(t x, t y, uint offset, uint count) { return msl_insert_bits(x, y, offset, count); } \
  template <int N> MSL_INLINE vec<t, N> insert_bits(vec<t, N> x, vec<t, N> y, uint offset, uint count) { \
    for (int i = 0; i < N; i++) x[i] = msl_insert_bits((t)x[i], (t)y[i], offset, count); \
    return x; \
  }
MSL_EACH_INTEGER(MSL_OF_INTEGER)
MSL_OF_2(mul24, int) MSL_OF_2(mul24, uint) MSL_OF_3(mad24, int) MSL_OF_3(mad24, uint)
#undef MSL_OF_INTEGER
#undef MSL_OF_1
#undef MSL_OF_2
#undef MSL_OF_3
} // namespace metal
