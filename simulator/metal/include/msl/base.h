// Words, types and constants of the Metal Shading Language that plain C++17 lacks.
//
// These headers implement enough of `metal_stdlib` to type-check and run compute kernels on the host, in two dialects:
//   * host (the default): C++17 without address spaces; this is what runs;
//   * strict (MSL_STRICT): C++ for OpenCL with real address spaces; it is only type-checked.
#pragma once

#ifdef MSL_STRICT
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable
#pragma OPENCL EXTENSION __cl_clang_bitfields : enable
#define device __attribute__((opencl_global_device))
#ifdef MSL_CONSTANT_APART
#define constant const __attribute__((opencl_global_host))
#else
#define constant const __global
#endif
#define threadgroup __local
#define thread __private
#define MSL_STATIC_CONSTEXPR static constexpr const __global
#define MSL_CONSTANT constexpr const __global
#define MSL_GENERIC __generic
#define MSL_NAME(name) msl_##name  // OpenCL has built-in types with these names; the rewriter renames them, too
#else
#define device
#define constant const
#define threadgroup
#define thread
#define MSL_STATIC_CONSTEXPR static constexpr
#define MSL_CONSTANT constexpr
#define MSL_GENERIC
#define MSL_NAME(name) name
typedef _Float16 half;
#endif

// Without debug information, this code has the line of its caller in the user's source.
#define MSL_INLINE inline __attribute__((always_inline, nodebug))
#define METAL_FUNC inline
#define METAL_CONST __attribute__((const))
#define METAL_PURE __attribute__((pure))
#define assert(condition) ((void)0)  // as in a release build of Metal
#define coherent(scope)              // host memory is coherent

// Macros of Apple's headers that some programs use.
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 0

#define MSL_SIMD_WIDTH 32u  // kSimdWidth of runtime/runtime.h, SIMD_WIDTH of mpsmith.metal_limits

#ifdef MSL_APPLE  // only type-checked: what Apple's compiler refuses
#include "bfloat.h"
#define MSL_REFUSE(condition, message) static_assert(!(condition), "Metal: " message)
#else
typedef __bf16 bfloat;
#define MSL_REFUSE(condition, message) static_assert(true, "")
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT 3.402823466e+38f
#define MAXHALF ((half)65504.0f)

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul

#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.19209290e-07f
#define HALF_DIG 2
#define HALF_MANT_DIG 11
#define HALF_MAX ((half)65504.0f)
#define HALF_MIN ((half)6.103515625e-5f)
#define HALF_EPSILON ((half)9.765625e-4f)

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.434294481903251827651f
#define M_LN2_F 0.693147180559945309417f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.785398163397448309616f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_PI_F 0.636619772367581343076f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.707106781186547524401f
#define M_E_H ((half)M_E_F)
#define M_LOG2E_H ((half)M_LOG2E_F)
#define M_LOG10E_H ((half)M_LOG10E_F)
#define M_LN2_H ((half)M_LN2_F)
#define M_LN10_H ((half)M_LN10_F)
#define M_PI_H ((half)M_PI_F)
#define M_PI_2_H ((half)M_PI_2_F)
#define M_PI_4_H ((half)M_PI_4_F)
#define M_1_PI_H ((half)M_1_PI_F)
#define M_2_PI_H ((half)M_2_PI_F)
#define M_2_SQRTPI_H ((half)M_2_SQRTPI_F)
#define M_SQRT2_H ((half)M_SQRT2_F)
#define M_SQRT1_2_H ((half)M_SQRT1_2_F)

// Lists of Metal's types, which the other headers expand.
#define MSL_EACH_SIGNED(_) _(char) _(short) _(int) _(long)
#define MSL_EACH_UNSIGNED(_) _(uchar) _(ushort) _(uint) _(ulong)
#define MSL_EACH_INTEGER(_) MSL_EACH_SIGNED(_) MSL_EACH_UNSIGNED(_)
#define MSL_EACH_SCALAR(_) MSL_EACH_INTEGER(_) _(half) _(float) _(bfloat)
