// Shared by the host's definitions of AIR's operations. These files become LLVM bitcode, which is linked into each kernel
// and inlined.
#pragma once
#include <stdint.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef _Float16 f16;
typedef __bf16 bf16;

// Always inlined: the scheduler identifies a waiting lane by its call site.
#define AIR extern "C" __attribute__((always_inline))
#define AIR_LOCAL static inline __attribute__((always_inline))

enum : u32 { kSimdWidth = 32 }; // SIMD_WIDTH of mpsmith.metal_limits
