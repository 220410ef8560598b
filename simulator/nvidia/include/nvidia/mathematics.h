// Float functions of the C library for the Metal headers, implemented by NVIDIA's libdevice if it is installed.
#pragma once

// clang-format off: one function a line
#define NVIDIA_UNARY(_) \
  _(sin) _(cos) _(tan) _(asin) _(acos) _(atan) _(sinh) _(cosh) _(tanh) _(asinh) _(acosh) _(atanh) \
  _(exp) _(exp2) _(exp10) _(log) _(log2) _(log10)
#define NVIDIA_BINARY(_) _(pow) _(atan2) _(fmod) _(fdim) _(nextafter)
// clang-format on
#define NVIDIA_DECLARE_UNARY(name) extern "C" float __nv_##name##f(float);
#define NVIDIA_DECLARE_BINARY(name) extern "C" float __nv_##name##f(float, float);
NVIDIA_UNARY(NVIDIA_DECLARE_UNARY)
NVIDIA_BINARY(NVIDIA_DECLARE_BINARY)
extern "C" float __nv_ldexpf(float, int);
extern "C" float __nv_frexpf(float, int*);
extern "C" int __nv_ilogbf(float);
#undef NVIDIA_DECLARE_UNARY
#undef NVIDIA_DECLARE_BINARY
#undef NVIDIA_UNARY
#undef NVIDIA_BINARY

#define __builtin_sinf __nv_sinf
#define __builtin_cosf __nv_cosf
#define __builtin_tanf __nv_tanf
#define __builtin_asinf __nv_asinf
#define __builtin_acosf __nv_acosf
#define __builtin_atanf __nv_atanf
#define __builtin_sinhf __nv_sinhf
#define __builtin_coshf __nv_coshf
#define __builtin_tanhf __nv_tanhf
#define __builtin_asinhf __nv_asinhf
#define __builtin_acoshf __nv_acoshf
#define __builtin_atanhf __nv_atanhf
#define __builtin_expf __nv_expf
#define __builtin_exp2f __nv_exp2f
#define __builtin_exp10f __nv_exp10f
#define __builtin_logf __nv_logf
#define __builtin_log2f __nv_log2f
#define __builtin_log10f __nv_log10f
#define __builtin_powf __nv_powf
#define __builtin_atan2f __nv_atan2f
#define __builtin_fmodf __nv_fmodf
#define __builtin_fdimf __nv_fdimf
#define __builtin_nextafterf __nv_nextafterf
#define __builtin_ldexpf __nv_ldexpf
#define __builtin_frexpf __nv_frexpf
#define __builtin_ilogbf __nv_ilogbf
