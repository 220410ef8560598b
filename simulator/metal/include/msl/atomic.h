// metal_atomic. Groups run one after another, so plain operations are atomic. With MSL_CHECKED they tell the checker that
// an access is atomic.
#pragma once
#include "sync.h"

#ifdef MSL_CHECKED
enum msl_use : uint { msl_loads = 1, msl_stores = 2 };  // enum Use of runtime/checker.cpp
extern "C" void msl_atomic_access(MSL_GENERIC const volatile void* address, uint size, uint use);
#define MSL_ATOMIC static __attribute__((noinline, no_sanitize("coverage")))
#define MSL_NOTE(use) msl_atomic_access(&p->value, sizeof(p->value), use)
#else
#define MSL_ATOMIC MSL_INLINE
#define MSL_NOTE(use)
#endif
// A kernel with this section uses atomic read-modify-write, so its result may depend on the order of the threads.
#define MSL_ORDER_MATTERS static __attribute__((section("msl_atomic_note"), used, retain)) char note

namespace metal {
template <class T> struct atomic { T value; };
template <class T> using _atomic = atomic<T>;
typedef atomic<int> MSL_NAME(atomic_int);
typedef atomic<uint> MSL_NAME(atomic_uint);
typedef atomic<long> MSL_NAME(atomic_long);
typedef atomic<ulong> MSL_NAME(atomic_ulong);
// Metal's atomic_bool takes four bytes.
template <> struct alignas(4) atomic<bool> { bool value; };
typedef atomic<bool> MSL_NAME(atomic_bool);
typedef atomic<float> MSL_NAME(atomic_float);

#define MSL_FETCH(SPACE, name, expression) \
  template <class T> \
  MSL_ATOMIC T atomic_fetch_##name##_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_loads | msl_stores); \
    T old = p->value; \
    p->value = (T)(expression); \
    return old; \
  }
#define MSL_ATOMICS(SPACE) \
  template <class T> MSL_ATOMIC T atomic_load_explicit(volatile const SPACE atomic<T>* p, MSL_NAME(memory_order)) { \
    MSL_NOTE(msl_loads); \
    return p->value; \
  } \
  template <class T> \
  MSL_ATOMIC void atomic_store_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_NOTE(msl_stores); \
    p->value = x; \
  } \
  template <class T> \
  MSL_ATOMIC T atomic_exchange_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_stores); \
    T old = p->value; \
    p->value = x; \
    return old; \
  } \
  template <class T> \
  MSL_ATOMIC bool atomic_compare_exchange_weak_explicit(volatile SPACE atomic<T>* p, thread remove_cv_t<T>* expected, \
      remove_cv_t<T> desired, MSL_NAME(memory_order), MSL_NAME(memory_order)) { \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_loads | msl_stores); \
    T old = p->value; \
    /* bits decide, so that a NaN equals itself and +0 differs from -0 */ \
    bool same = __builtin_memcmp(&old, expected, sizeof(T)) == 0; \
    if (same) p->value = desired; \
    else *expected = old; \
    return same; \
  } \
  MSL_FETCH(SPACE, add, old + x) MSL_FETCH(SPACE, sub, old - x) \
  MSL_FETCH(SPACE, min, x < old ? x : old) MSL_FETCH(SPACE, max, x > old ? x : old) \
  MSL_FETCH(SPACE, and, old & x) MSL_FETCH(SPACE, or, old | x) MSL_FETCH(SPACE, xor, old ^ x)
MSL_ATOMICS(device)
#ifdef MSL_STRICT
MSL_ATOMICS(threadgroup)
#endif
#undef MSL_ATOMICS
#undef MSL_FETCH
// Metal's 64-bit minimum and maximum return nothing.
MSL_INLINE void atomic_min_explicit(volatile device atomic<ulong>* p, ulong x, MSL_NAME(memory_order) o) {
  atomic_fetch_min_explicit(p, x, o);
}
MSL_INLINE void atomic_max_explicit(volatile device atomic<ulong>* p, ulong x, MSL_NAME(memory_order) o) {
  atomic_fetch_max_explicit(p, x, o);
}
} // namespace metal
#undef MSL_NOTE
