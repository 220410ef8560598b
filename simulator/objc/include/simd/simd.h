// Apple's simd, whose headers zig has, and what Darwin's math library has for it and Linux's lacks.
#pragma once
#ifdef __cplusplus
#include <cmath>
#define MPSMITH_OF_PI(NAME, TYPE, SUFFIX) \
  static inline TYPE __##NAME##pi##SUFFIX(TYPE x) { return std::NAME(x * static_cast<TYPE>(M_PI)); }
#define MPSMITH_SINCOSPI(TYPE, SUFFIX) \
  MPSMITH_OF_PI(sin, TYPE, SUFFIX) \
  MPSMITH_OF_PI(cos, TYPE, SUFFIX) \
  MPSMITH_OF_PI(tan, TYPE, SUFFIX) \
  static inline void __sincospi##SUFFIX(TYPE x, TYPE* sine, TYPE* cosine) { \
    *sine = __sinpi##SUFFIX(x); \
    *cosine = __cospi##SUFFIX(x); \
  }
#define MPSMITH_OF_ONE(NAME) \
  static inline _Float16 __##NAME##f16(_Float16 x) { return static_cast<_Float16>(std::NAME(static_cast<float>(x))); }
#define MPSMITH_OF_TWO(NAME) \
  static inline _Float16 __##NAME##f16(_Float16 x, _Float16 y) { \
    return static_cast<_Float16>(std::NAME(static_cast<float>(x), static_cast<float>(y))); \
  }
MPSMITH_SINCOSPI(float, f)
MPSMITH_SINCOSPI(double, )
MPSMITH_OF_ONE(fabs)
MPSMITH_OF_ONE(sqrt)
MPSMITH_OF_ONE(ceil)
MPSMITH_OF_ONE(floor)
MPSMITH_OF_ONE(rint)
MPSMITH_OF_ONE(trunc)
MPSMITH_OF_TWO(fmin)
MPSMITH_OF_TWO(fmax)
MPSMITH_OF_TWO(copysign)
#endif
#include_next <simd/simd.h>
