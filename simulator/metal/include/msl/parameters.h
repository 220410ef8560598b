// The type of a kernel parameter by its position, and conversion of a builtin to the type of its parameter.
#pragma once
#include "vector.h"

namespace metal {
template <int I, class F> struct msl_argument;
template <int I, class R, class A, class... B> struct msl_argument<I, R(A, B...)> {
  typedef typename msl_argument<I - 1, R(B...)>::type type;
};
template <class R, class A, class... B> struct msl_argument<0, R(A, B...)> { typedef A type; };

template <class P> MSL_INLINE P msl_builtin(uint v) {
  static_assert(is_scalar<P>::value, "this attribute needs a scalar parameter: uint or ushort");
  return (P)v;
}
template <class P> MSL_INLINE P msl_builtin(uint3 v) {
  typedef msl_parts<remove_cv_t<P>> parts;
  typedef typename parts::scalar S;
  if constexpr ((int)parts::count == 1) return (P)v.x;
  else if constexpr ((int)parts::count == 2) return P((S)v.x, (S)v.y);
  else return P((S)v.x, (S)v.y, (S)v.z);
}
} // namespace metal
