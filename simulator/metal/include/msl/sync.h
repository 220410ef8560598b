// metal_compute, metal_simdgroup, metal_quadgroup: barriers and exchanges between lanes.
//
// Everything here ends in calls into the scheduler (runtime/scheduler.cpp). They are convergent and the wrappers are
// always inlined, so that each use in the source has its own call site: lanes that wait at the same site form the
// active set.
#pragma once
#include "integer.h"
#include "pack.h"
#include "memory_order.h"
#include "uniform.h"

extern "C" {
struct __attribute__((aligned(64))) msl_exchange_t {
  uint mask;    // lanes that take part
  uint folded;  // one bit for each quad (or bit 0): the fold is already computed
  char pad[56];
  char values[MSL_SIMD_WIDTH * 64];  // lane l's value at l * its size
  char folds[8 * 64];    // the result of a reduction, for each quad or for all lanes
};
extern uint msl_current_lane;
// Caller-saved registers keep the stack of a waiting thread small.
#if defined(MSL_STRICT) || !defined(__x86_64__)
#define MSL_WAITS __attribute__((convergent))
#else
#define MSL_WAITS __attribute__((convergent, preserve_none))
#endif
MSL_WAITS void msl_threadgroup_barrier(uint flags);
MSL_WAITS void msl_simdgroup_barrier(uint flags);
MSL_WAITS MSL_GENERIC msl_exchange_t* msl_exchange(MSL_GENERIC const void* value, uint size);
#ifdef MSL_CHECKED
void msl_inactive_read(const char* operation);
#endif
__attribute__((convergent)) void msl_region_enter();
MSL_WAITS void msl_region_leave();
}

// A branch, a loop, an iteration or a function that contains SIMD-group operations: lanes leave it together.
// simulator/metal/reconvergence.py inserts these.
struct msl_region {
  MSL_INLINE msl_region() { msl_region_enter(); }
  MSL_INLINE ~msl_region() { msl_region_leave(); }
};

namespace metal {
MSL_INLINE void threadgroup_barrier(mem_flags f) { msl_threadgroup_barrier((uint)f); }
MSL_INLINE void threadgroup_barrier(mem_flags f, thread_scope) { msl_threadgroup_barrier((uint)f); }
MSL_INLINE void simdgroup_barrier(mem_flags f) { msl_simdgroup_barrier((uint)f); }
MSL_INLINE void simdgroup_barrier(mem_flags f, thread_scope) { msl_simdgroup_barrier((uint)f); }
MSL_INLINE void atomic_thread_fence(mem_flags, MSL_NAME(memory_order), thread_scope = thread_scope_device) {}

#ifdef MSL_STRICT
typedef const __constant char* msl_name;
#else
typedef const char* msl_name;
#endif
template <class T> struct msl_lanes {
  MSL_GENERIC msl_exchange_t* shared;
  uint lane;
  msl_name operation;
  // The value of a lane. That of an inactive lane is undefined, and the checker records the read.
  MSL_INLINE T operator[](uint i) const {
#ifdef MSL_CHECKED
    if (!active(i)) msl_inactive_read(operation);
#endif
    return of_active(i);
  }
  MSL_INLINE T of_active(uint i) const { return ((MSL_GENERIC const T*)shared->values)[i]; }
  MSL_INLINE bool active(uint i) const { return i < MSL_SIMD_WIDTH && (shared->mask >> i & 1); }
  // The first lane that arrives computes the result for all lanes of its SIMD group or quad.
  template <class F> MSL_INLINE T fold(uint width, F f) const {
    uint part = width == MSL_SIMD_WIDTH ? 0 : lane / width, begin = part * width;
    MSL_GENERIC T* result = (MSL_GENERIC T*)(shared->folds + part * 64);
    if (!(shared->folded >> part & 1)) {
      uint i = begin;
      while (!active(i)) i++;
      T r = of_active(i);
      for (i++; i < begin + width; i++)
        if (active(i)) r = f(r, of_active(i));
      *result = r;
      shared->folded |= 1u << part;
    }
    return *result;
  }
};
// Any bytes: the lanes of a SIMD group see each other's.
template <class T> MSL_INLINE msl_lanes<T> msl_share_bytes(T x, msl_name operation) {
  static_assert(sizeof(T) <= 64, "SIMD-group functions take values of at most 64 bytes");
  msl_lanes<T> r;
  r.shared = msl_exchange(&x, sizeof(T));
  r.lane = msl_current_lane;
  r.operation = operation;
  return r;
}
template <class T> MSL_INLINE msl_lanes<T> msl_share(T x, msl_name operation) {
  MSL_REFUSE(!is_arithmetic<T>::value, "SIMD-group functions take scalars and vectors of numbers, not a struct"
             " (MSL specification, SIMD-Group Functions)");
  MSL_REFUSE(sizeof(make_scalar_t<T>) > 4, "SIMD-group functions take no 64-bit numbers: upstream exchanges them in"
             " two halves (c10/metal/reduction_utils.h)");
  MSL_REFUSE((is_same<make_scalar_t<T>, bfloat>::value), "SIMD-group functions are not defined for bfloat: convert to"
             " float (MSL specification, SIMD-Group Functions; c10/metal/reduction_utils.h)");
  MSL_REFUSE((is_same<make_scalar_t<T>, bool>::value), "SIMD-group functions take no bool: convert to an integer"
             " (MSL specification, SIMD-Group Functions; SPIRV-Cross pull request 1499)");
  return msl_share_bytes(x, operation);
}

#define MSL_FOLD(prefix, W, name, expression) \
  template <class T> MSL_INLINE T prefix##_##name(T x) { \
    return msl_share(x, #prefix "_" #name).fold(W, [](T a, T b) { return (T)(expression); }); \
  }
#define MSL_SCAN(prefix, W, name, start, last, expression) \
  template <class T> MSL_INLINE T prefix##_prefix_##name(T x) { \
    auto v = msl_share(x, #prefix "_prefix_" #name); \
    T a = (T)(start); \
    for (uint i = v.lane & ~(W - 1); i last v.lane; i++) \
      if (v.active(i)) { T b = v.of_active(i); a = (T)(expression); } \
    return a; \
  }
#define MSL_LANE_OPERATIONS(prefix, W) \
  MSL_FOLD(prefix, W, sum, a + b) \
  MSL_FOLD(prefix, W, product, a * b) \
  MSL_FOLD(prefix, W, min, min(a, b)) \
  MSL_FOLD(prefix, W, max, max(a, b)) \
  MSL_FOLD(prefix, W, and, a & b) \
  MSL_FOLD(prefix, W, or, a | b) \
  MSL_FOLD(prefix, W, xor, a ^ b) \
  MSL_SCAN(prefix, W, inclusive_sum, 0, <=, a + b) \
  MSL_SCAN(prefix, W, exclusive_sum, 0, <, a + b) \
  MSL_SCAN(prefix, W, inclusive_product, 1, <=, a * b) \
  MSL_SCAN(prefix, W, exclusive_product, 1, <, a * b) \
  template <class T> MSL_INLINE T prefix##_shuffle(T x, ushort from) { \
    auto v = msl_share(x, #prefix "_shuffle"); \
    return v[(v.lane & ~(W - 1)) | (from & (W - 1))]; \
  } \
  template <class T> MSL_INLINE T prefix##_broadcast(T x, ushort from) { \
    auto v = msl_share(x, #prefix "_broadcast"); \
    return v[(v.lane & ~(W - 1)) | (from & (W - 1))]; \
  } \
  template <class T> MSL_INLINE T prefix##_broadcast_first(T x) { \
    auto v = msl_share(x, #prefix "_broadcast_first"); \
    uint first = v.lane & ~(W - 1); \
    while (!v.active(first)) first++; \
    return v.of_active(first); \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_up(T x, ushort d) { \
    auto v = msl_share(x, #prefix "_shuffle_up"); \
    return (v.lane & (W - 1)) >= d ? v[v.lane - d] : x; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_down(T x, ushort d) { \
    auto v = msl_share(x, #prefix "_shuffle_down"); \
    return (v.lane & (W - 1)) + d < W ? v[v.lane + d] : x; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_xor(T x, ushort d) { \
    auto v = msl_share(x, #prefix "_shuffle_xor"); \
    return v[(v.lane ^ d) & (MSL_SIMD_WIDTH - 1)]; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_rotate_up(T x, ushort d) { \
    auto v = msl_share(x, #prefix "_shuffle_rotate_up"); \
    return v[(v.lane & ~(W - 1)) | ((v.lane - d) & (W - 1))]; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_rotate_down(T x, ushort d) { \
    auto v = msl_share(x, #prefix "_shuffle_rotate_down"); \
    return v[(v.lane & ~(W - 1)) | ((v.lane + d) & (W - 1))]; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_and_fill_up(T x, T fill, ushort d) { \
    uint k = msl_current_lane & (W - 1), from = (msl_current_lane & ~(W - 1)) | ((k - d) & (W - 1)); \
    auto v = msl_share(x, #prefix "_shuffle_and_fill_up"); \
    T up = k >= d ? v[from] : x; \
    auto filling = msl_share(fill, #prefix "_shuffle_and_fill_up"); \
    return k >= d ? up : filling[from]; \
  } \
  template <class T> MSL_INLINE T prefix##_shuffle_and_fill_down(T x, T fill, ushort d) { \
    uint k = msl_current_lane & (W - 1), from = (msl_current_lane & ~(W - 1)) | ((k + d) & (W - 1)); \
    auto v = msl_share(x, #prefix "_shuffle_and_fill_down"); \
    T down = k + d < W ? v[from] : x; \
    auto filling = msl_share(fill, #prefix "_shuffle_and_fill_down"); \
    return k + d < W ? down : filling[from]; \
  } \
  MSL_INLINE bool prefix##_all(bool b) { return prefix##_and((uint)b) != 0; } \
  MSL_INLINE bool prefix##_any(bool b) { return prefix##_or((uint)b) != 0; } \
  MSL_INLINE bool prefix##_is_first() { \
    auto v = msl_share(0u, #prefix "_is_first"); \
    uint first = v.lane & ~(W - 1); \
    while (!v.active(first)) first++; \
    return v.lane == first; \
  }
#define MSL_FILL(name, from_below) \
  template <class T> MSL_INLINE T simd_shuffle_and_fill_##name(T x, T fill, ushort d, ushort modulo) { \
    uint k = msl_current_lane & (modulo - 1), first = msl_current_lane & ~(modulo - 1u); \
    uint from = first | ((from_below ? k - d : k + d) & (modulo - 1)); \
    bool inside = from_below ? k >= d : k + d < modulo; \
    auto v = msl_share(x, "simd_shuffle_and_fill_" #name); \
    T moved = inside ? v[from] : x; \
    auto filling = msl_share(fill, "simd_shuffle_and_fill_" #name); \
    return inside ? moved : filling[from]; \
  }
MSL_FILL(up, true) MSL_FILL(down, false)
#undef MSL_FILL
MSL_LANE_OPERATIONS(simd, MSL_SIMD_WIDTH)
MSL_LANE_OPERATIONS(quad, 4u)
#undef MSL_LANE_OPERATIONS
#undef MSL_FOLD
#undef MSL_SCAN

#define MSL_VOTE(prefix, W, V) \
  struct prefix##_vote { \
    typedef V vote_t; \
    V votes; \
    uint active; \
    prefix##_vote() = default; \
    explicit prefix##_vote(V v) : votes(v), active(W == MSL_SIMD_WIDTH ? 0xffffffffu : 0xfu) {} \
    explicit operator vote_t() const { return votes; } \
    bool all() const { return (uint)votes == active; } \
    bool any() const { return votes != 0; } \
  }; \
  MSL_INLINE prefix##_vote prefix##_ballot(bool b) { \
    auto v = msl_share((uint)b, #prefix "_ballot"); \
    uint first = v.lane & ~(W - 1); \
    prefix##_vote r((V)0); \
    r.active = v.shared->mask >> first & (W == MSL_SIMD_WIDTH ? 0xffffffffu : 0xfu); \
    for (uint i = 0; i < W; i++) \
      if (v.active(first + i) && v.of_active(first + i)) r.votes |= (V)((V)1 << i); \
    return r; \
  } \
  MSL_INLINE prefix##_vote prefix##_active_threads_mask() { return prefix##_ballot(true); }
MSL_VOTE(simd, MSL_SIMD_WIDTH, ulong)
MSL_VOTE(quad, 4u, ushort)
#undef MSL_VOTE
} // namespace metal
