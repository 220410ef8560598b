// Shared by the GPU's definitions of AIR's operations. These files become LLVM bitcode, which is linked into each kernel
// and inlined. Exchanges are those of kernels from Metal source.
#pragma once
#include "nvidia/matrix.h"

typedef uchar u8;
typedef char s8;
typedef ushort u16;
typedef short s16;
typedef uint u32;
typedef int s32;
typedef ulong u64;
typedef long s64;
typedef float f32;
typedef half f16;
typedef bfloat bf16;

#define AIR extern "C" __attribute__((always_inline, convergent))
