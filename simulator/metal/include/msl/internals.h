// Internal functions of Apple's headers that public programs call. The last argument of mathematical functions selects
// the fast version; the host is always precise.
#pragma once
#include "simdgroup_matrix.h"

#define MSL_INTERNAL_UNARY(name) \
  template <class A, class... F> MSL_INLINE A __metal_##name(A a, F...) { return metal::name(a); }
#define MSL_INTERNAL_BINARY(name) \
  template <class A, class... F> MSL_INLINE A __metal_##name(A a, A b, F...) { return metal::name(a, b); }
#define MSL_INTERNAL_TERNARY(name) \
  template <class A, class... F> MSL_INLINE A __metal_##name(A a, A b, A c, F...) { return metal::name(a, b, c); }

MSL_INTERNAL_UNARY(sin) MSL_INTERNAL_UNARY(cos) MSL_INTERNAL_UNARY(tan)
MSL_INTERNAL_UNARY(asin) MSL_INTERNAL_UNARY(acos) MSL_INTERNAL_UNARY(atan)
MSL_INTERNAL_UNARY(sinh) MSL_INTERNAL_UNARY(cosh) MSL_INTERNAL_UNARY(tanh)
MSL_INTERNAL_UNARY(asinh) MSL_INTERNAL_UNARY(acosh) MSL_INTERNAL_UNARY(atanh)
MSL_INTERNAL_UNARY(sinpi) MSL_INTERNAL_UNARY(cospi) MSL_INTERNAL_UNARY(tanpi)
MSL_INTERNAL_UNARY(exp) MSL_INTERNAL_UNARY(exp2) MSL_INTERNAL_UNARY(exp10)
MSL_INTERNAL_UNARY(log) MSL_INTERNAL_UNARY(log2) MSL_INTERNAL_UNARY(log10)
MSL_INTERNAL_UNARY(sqrt) MSL_INTERNAL_UNARY(rsqrt) MSL_INTERNAL_UNARY(fract)
MSL_INTERNAL_UNARY(floor) MSL_INTERNAL_UNARY(ceil) MSL_INTERNAL_UNARY(trunc)
MSL_INTERNAL_UNARY(round) MSL_INTERNAL_UNARY(rint) MSL_INTERNAL_UNARY(fabs)
MSL_INTERNAL_BINARY(pow) MSL_INTERNAL_BINARY(powr) MSL_INTERNAL_BINARY(atan2) MSL_INTERNAL_BINARY(fmod)
MSL_INTERNAL_BINARY(fmin) MSL_INTERNAL_BINARY(fmax) MSL_INTERNAL_BINARY(fdim) MSL_INTERNAL_BINARY(copysign)
MSL_INTERNAL_BINARY(nextafter) MSL_INTERNAL_BINARY(divide)
MSL_INTERNAL_TERNARY(fma) MSL_INTERNAL_TERNARY(fmin3) MSL_INTERNAL_TERNARY(fmax3) MSL_INTERNAL_TERNARY(fmedian3)
template <class A> MSL_INLINE int __metal_ilogb(A a) { return metal::ilogb(a); }
template <class A, class... F> MSL_INLINE A __metal_ldexp(A a, int e, F...) { return metal::ldexp(a, e); }
template <class A, class... F> MSL_INLINE A __metal_frexp(A a, MSL_GENERIC int* e, F...) {
  return metal::frexp(a, *e);
}
template <class A, class... F> MSL_INLINE A __metal_modf(A a, MSL_GENERIC A* whole, F...) {
  return metal::modf(a, *whole);
}
template <class A, class... F> MSL_INLINE A __metal_sincos(A a, MSL_GENERIC A* cosine, F...) {
  return metal::sincos(a, *cosine);
}

#define MSL_INTERNAL_OF_LANES(name) \
  template <class A> MSL_INLINE A __metal_simd_##name(A a) { return metal::simd_##name(a); }
#define MSL_INTERNAL_FROM_LANE(name) \
  template <class A> MSL_INLINE A __metal_simd_##name(A a, ushort lane) { return metal::simd_##name(a, lane); }
MSL_INTERNAL_OF_LANES(sum) MSL_INTERNAL_OF_LANES(product) MSL_INTERNAL_OF_LANES(min) MSL_INTERNAL_OF_LANES(max)
// Bit operations convert a floating-point number to an integer first.
#define MSL_INTERNAL_OF_BITS(name) \
  template <class A> MSL_INLINE A __metal_simd_##name(A a) { \
    if constexpr (metal::is_floating_point<A>::value) return (A)metal::simd_##name((int)a); \
    else return metal::simd_##name(a); \
  }
MSL_INTERNAL_OF_BITS(and) MSL_INTERNAL_OF_BITS(or) MSL_INTERNAL_OF_BITS(xor)
MSL_INTERNAL_OF_LANES(prefix_inclusive_sum) MSL_INTERNAL_OF_LANES(prefix_exclusive_sum)
MSL_INTERNAL_OF_LANES(prefix_inclusive_product) MSL_INTERNAL_OF_LANES(prefix_exclusive_product)
MSL_INTERNAL_OF_LANES(broadcast_first)
MSL_INTERNAL_FROM_LANE(broadcast) MSL_INTERNAL_FROM_LANE(shuffle) MSL_INTERNAL_FROM_LANE(shuffle_xor)
MSL_INTERNAL_FROM_LANE(shuffle_up) MSL_INTERNAL_FROM_LANE(shuffle_down)
MSL_INTERNAL_FROM_LANE(shuffle_rotate_up) MSL_INTERNAL_FROM_LANE(shuffle_rotate_down)
#define MSL_INTERNAL_FILL(name) \
  template <class A> MSL_INLINE A __metal_simd_##name(A a, A fill, ushort delta, ushort modulo) { \
    return metal::simd_##name(a, fill, delta, modulo); \
  }
MSL_INTERNAL_FILL(shuffle_and_fill_up) MSL_INTERNAL_FILL(shuffle_and_fill_down)

MSL_INLINE ushort __metal_get_simdgroup_size(ushort) { return MSL_SIMD_WIDTH; }
MSL_INLINE ushort __metal_get_thread_index_in_simdgroup(ushort) {
  return (ushort)metal::msl_share(0u, "thread_index_in_simdgroup").lane;
}
template <class T> struct __is_valid_simdgroup_type
    : metal::bool_constant<metal::is_arithmetic<T>::value && sizeof(metal::make_scalar_t<T>) <= 4 &&
                           !metal::is_same<metal::make_scalar_t<T>, bfloat>::value &&
                           !metal::is_same<metal::make_scalar_t<T>, bool>::value> {};

#undef MSL_INTERNAL_UNARY
#undef MSL_INTERNAL_BINARY
#undef MSL_INTERNAL_TERNARY
#undef MSL_INTERNAL_OF_LANES
#undef MSL_INTERNAL_OF_BITS
#undef MSL_INTERNAL_FROM_LANE
#undef MSL_INTERNAL_FILL
