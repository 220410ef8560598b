// How lanes of a SIMD group exchange values: the scheduler in simulator/metal/runtime brings together those that wait
// at one call site.
#pragma once
#include "runtime.h"

// Same layout as Exchange in simulator/metal/runtime/scheduler.cpp.
struct Exchange {
  u32 mask;    // lanes that take part
  u32 folded;  // bit 0: the fold below is computed
  char pad[56];
  char values[kSimdWidth * 64];  // lane l's value at l * its size
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
  // What a lane holds that takes no part is undefined; on a Mac it reads as zero. torch relies on that: where its 64-bit
  // sums end with a part of a SIMD group, they come out right there.
  __attribute__((always_inline)) T operator[](u32 other) const {
    other %= kSimdWidth;
    return shared->mask >> other & 1 ? ((const T*)shared->values)[other] : T{};
  }
  __attribute__((always_inline)) u32 first() const { return __builtin_ctz(shared->mask); }
};
