// Barriers, and exchanges between lanes. AIR has no reconvergence points: the lanes that reach an operation together take
// part.
#include "runtime.h"

using metal::msl_share;

AIR void airrt_threadgroup_barrier(u32) { __syncthreads(); }
AIR void airrt_simdgroup_barrier(u32) { metal::simdgroup_barrier(metal::mem_flags::mem_none); }

#define FOLD(T, name, expression) \
  AIR T airrt_simd_##name##_##T(T x) { \
    return msl_share(x).fold(32, [](T a, T b) __attribute__((always_inline)) { return (T)(expression); }); \
  }
#define SCAN(T, name, start, is_last, expression) \
  AIR T airrt_simd_prefix_##name##_##T(T x) { \
    auto v = msl_share(x); \
    T a = (T)(start); \
    for (u32 i = 0; i < 32; i++) { \
      T b = v[i]; \
      if (i is_last v.lane && v.active(i)) a = (T)(expression); \
    } \
    return a; \
  }
#define MOVE(T, name, from, inside) \
  AIR T airrt_simd_##name##_##T(T x, u16 n) { \
    auto v = msl_share(x); \
    T other = v.or_zero((from) & 31); \
    return (inside) ? other : x; \
  }
// Sections have `modulo` lanes. Values from outside of a section come from the lanes' `fill`, or if that lane is
// inactive, from the lane's own.
#define MOVE_AND_FILL(T, name, inside, from, outside) \
  AIR T airrt_simd_shuffle_and_fill_##name##_##T(T x, T fill, u16 n, u16 modulo) { \
    auto v = msl_share(x); \
    auto fills = msl_share(fill); \
    u32 place = v.lane % modulo, section = v.lane - place, filling = (section + (outside)) & 31; \
    T moved = v.or_zero((section + (from)) & 31), filled = fills[filling]; \
    return (inside) ? moved : fills.active(filling) ? filled : fill; \
  }
// clang-format off: a table of instances, which the formatter takes for statements
#define MOVES(T) \
  MOVE(T, shuffle, n, true) \
  MOVE(T, broadcast, n, true) \
  MOVE(T, shuffle_xor, v.lane ^ n, true) \
  MOVE(T, shuffle_up, v.lane - n, v.lane >= n) \
  MOVE(T, shuffle_down, v.lane + n, v.lane + n < 32) \
  MOVE(T, shuffle_rotate_up, v.lane - n, true) \
  MOVE(T, shuffle_rotate_down, v.lane + n, true) \
  AIR T airrt_simd_broadcast_first_##T(T x) { \
    auto v = msl_share(x); \
    return v[__builtin_ctz(v.mask)]; \
  } \
  MOVE_AND_FILL(T, up, place >= n, place - n, (place + modulo - n) % modulo) \
  MOVE_AND_FILL(T, down, place + n < modulo, place + n, (place + n) % modulo)
#define ARITHMETIC(T) \
  FOLD(T, sum, a + b) FOLD(T, product, a * b) FOLD(T, min, b < a ? b : a) FOLD(T, max, b > a ? b : a) \
  SCAN(T, inclusive_sum, 0, <=, a + b) SCAN(T, exclusive_sum, 0, <, a + b) \
  SCAN(T, inclusive_product, 1, <=, a * b) SCAN(T, exclusive_product, 1, <, a * b)
#define INTEGER(T) MOVES(T) ARITHMETIC(T) FOLD(T, and, a & b) FOLD(T, or, a | b) FOLD(T, xor, a ^ b)
#define REAL(T) MOVES(T) ARITHMETIC(T)
INTEGER(u8); INTEGER(s8); INTEGER(u16); INTEGER(s16); INTEGER(u32); INTEGER(s32); INTEGER(u64); INTEGER(s64);
REAL(f32); REAL(f16); REAL(bf16);
// clang-format on

AIR bool airrt_simd_any(bool x) { return __nvvm_vote_ballot_sync(nvidia_active(), x) != 0; }
AIR bool airrt_simd_all(bool x) { return __nvvm_vote_ballot_sync(nvidia_active(), !x) == 0; }
AIR bool airrt_simd_is_first() { return (u32)__builtin_ctz(nvidia_active()) == nvidia_lane(); }
AIR u64 airrt_simd_ballot(bool x) { return (u32)__nvvm_vote_ballot_sync(nvidia_active(), x); }
AIR u64 airrt_simd_active_threads_mask() { return nvidia_active(); }
