// Names that MSL programs use without `metal::` and without `using namespace metal`.
#pragma once
#include "vector.h"
#include "memory_order.h"

#define MSL_GLOBAL_NAMES(t) \
  using metal::t##2; \
  using metal::t##3; \
  using metal::t##4;
MSL_EACH_SCALAR(MSL_GLOBAL_NAMES) MSL_GLOBAL_NAMES(bool)
#undef MSL_GLOBAL_NAMES
#define MSL_GLOBAL_NAMES(t) \
  using metal::packed_##t##2; \
  using metal::packed_##t##3; \
  using metal::packed_##t##4;
MSL_EACH_SCALAR(MSL_GLOBAL_NAMES)
#undef MSL_GLOBAL_NAMES
// The scalar types are names of both, `uint` and `metal::uint`.
namespace metal {
#ifndef MSL_STRICT
using ::half;
#endif
using ::bfloat, ::uchar, ::ushort, ::uint, ::ulong, ::size_t, ::ptrdiff_t, ::intptr_t, ::uintptr_t;
using ::int8_t, ::int16_t, ::int32_t, ::int64_t, ::uint8_t, ::uint16_t, ::uint32_t, ::uint64_t;
} // namespace metal
namespace simd = metal;  // also without <simd/simd.h>
using metal::as_type;
using metal::mem_flags;
using metal::msl_c_cast;
using metal::msl_cast;
using metal::vec;
#define MSL_GLOBAL_NAMES(t) \
  using metal::t##2x2; \
  using metal::t##3x3; \
  using metal::t##4x4;
MSL_GLOBAL_NAMES(float) MSL_GLOBAL_NAMES(half)
#undef MSL_GLOBAL_NAMES
