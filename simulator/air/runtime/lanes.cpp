// Barriers, and exchanges between lanes. Reductions run in the order of the lanes.
#include "lanes.h"

AIR __attribute__((convergent)) void airrt_threadgroup_barrier(u32 flags) { msl_threadgroup_barrier(flags); }
AIR __attribute__((convergent)) void airrt_simdgroup_barrier(u32 flags) { msl_simdgroup_barrier(flags); }

// The first lane that arrives computes the result for all.
#define FOLD(T, name, expression) \
  AIR T airrt_simd_##name##_##T(T x) { \
    auto v = Lanes<T>::share(x); \
    if (!(v.shared->folded & 1)) { \
      T a = v[v.first()]; \
      for (u32 m = v.shared->mask & (v.shared->mask - 1); m; m &= m - 1) { \
        T b = v[__builtin_ctz(m)]; \
        a = (T)(expression); \
      } \
      *(T*)v.shared->folds = a; \
      v.shared->folded |= 1; \
    } \
    return *(T*)v.shared->folds; \
  }
#define SCAN(T, name, start, is_last, expression) \
  AIR T airrt_simd_prefix_##name##_##T(T x) { \
    auto v = Lanes<T>::share(x); \
    T a = (T)(start); \
    for (u32 i = 0; i is_last v.lane; i++) \
      if (v.shared->mask >> i & 1) { \
        T b = v[i]; \
        a = (T)(expression); \
      } \
    return a; \
  }
#define MOVE(T, name, value) \
  AIR T airrt_simd_##name##_##T(T x, u16 n) { \
    auto v = Lanes<T>::share(x); \
    return value; \
  }
// Sections have `modulo` lanes. Values from outside of a section come from the lanes' `fill`. In a partial SIMD group that
// lane may not exist: then it is the lane's own `fill`, which is the same if kernels fill with a constant (as nonzero
// does).
template <class T> struct Filled { T x, fill; };
#define MOVE_AND_FILL(T, name, inside, from, outside) \
  AIR T airrt_simd_shuffle_and_fill_##name##_##T(T x, T fill, u16 n, u16 modulo) { \
    auto v = Lanes<Filled<T>>::share({x, fill}); \
    u32 place = v.lane % modulo, section = v.lane - place; \
    if (inside) return v[section + from].x; \
    u32 filling = section + outside; \
    return v.shared->mask >> filling & 1 ? v[filling].fill : fill; \
  }
// clang-format off: a table of instances, which the formatter takes for statements
#define MOVES(T) \
  MOVE(T, shuffle, v[n]) \
  MOVE(T, broadcast, v[n]) \
  MOVE(T, shuffle_xor, v[v.lane ^ n]) \
  MOVE(T, shuffle_up, v.lane >= n ? v[v.lane - n] : x) \
  MOVE(T, shuffle_down, v.lane + n < kSimdWidth ? v[v.lane + n] : x) \
  MOVE(T, shuffle_rotate_up, v[v.lane - n]) \
  MOVE(T, shuffle_rotate_down, v[v.lane + n]) \
  AIR T airrt_simd_broadcast_first_##T(T x) { \
    auto v = Lanes<T>::share(x); \
    return v[v.first()]; \
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

AIR bool airrt_simd_any(bool x) { return airrt_simd_or_u32(x) != 0; }
AIR bool airrt_simd_all(bool x) { return airrt_simd_and_u32(x) != 0; }
AIR bool airrt_simd_is_first() {
  auto v = Lanes<u32>::share(0);
  return v.first() == v.lane;
}
AIR u64 airrt_simd_ballot(bool x) {
  auto v = Lanes<u32>::share(x);
  u64 votes = 0;
  for (u32 i = 0; i < kSimdWidth; i++)
    if ((v.shared->mask >> i & 1) && v[i]) votes |= 1ull << i;
  return votes;
}
AIR u64 airrt_simd_active_threads_mask() { return Lanes<u32>::share(0).shared->mask; }
