// Exchanges between the lanes of a SIMD group: the scheduler in simulator/metal/runtime synchronizes lanes that wait at
// the same call site.
#pragma once
#include "runtime.h"

// Same layout as Exchange in simulator/metal/runtime/scheduler.cpp.
struct Exchange {
  u32 mask; // lanes that take part
  u32 folded; // bit 0: the fold below is computed
  char pad[56];
  char values[kSimdWidth * 64]; // lane l's value at l * its size
  char folds[8 * 64];
};
#if defined(__x86_64__)
#define AIR_WAITS __attribute__((convergent, preserve_none))
#else
#define AIR_WAITS __attribute__((convergent))
#endif
extern "C" {
extern u32 msl_current_lane;
AIR_WAITS void msl_threadgroup_barrier(u32 flags);
AIR_WAITS void msl_simdgroup_barrier(u32 flags);
AIR_WAITS Exchange* msl_exchange(const void* value, u32 size);
}

template <class T> struct Lanes {
  Exchange* shared;
  u32 lane;
  static __attribute__((always_inline)) Lanes share(const T& mine) {
    return {msl_exchange(&mine, sizeof mine), msl_current_lane};
  }
  // The value of an inactive lane is undefined; on a Mac it is zero. torch relies on that in 64-bit sums that end with a
  // partial SIMD group.
  __attribute__((always_inline)) T operator[](u32 other) const {
    other %= kSimdWidth;
    return shared->mask >> other & 1 ? ((const T*)shared->values)[other] : T{};
  }
  __attribute__((always_inline)) u32 first() const { return __builtin_ctz(shared->mask); }
};
