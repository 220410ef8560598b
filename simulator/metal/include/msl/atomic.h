// metal_atomic. Groups run one after another, so plain operations are atomic. With MSL_CHECKED they tell the checker that
// an access is atomic.
#pragma once
#include "sync.h"

#ifdef MSL_CHECKED
enum msl_use : uint { msl_loads = 1, msl_stores = 2 };  // enum Use of runtime/checker.cpp
extern "C" void msl_atomic_access(MSL_GENERIC const volatile void* address, uint size, uint use);
// An inlined function reports the caller's line, and only one that is not inlined can go without the checker's hooks.
#define MSL_UNCHECKED static __attribute__((noinline, nodebug, no_sanitize("coverage")))
#define MSL_NOTE(use) msl_atomic_access(&p->value, sizeof(p->value), use)
#else
#define MSL_UNCHECKED MSL_INLINE
#define MSL_NOTE(use)
#endif
// A kernel with this section uses atomic read-modify-write, so its result may depend on the order of the threads.
#define MSL_ORDER_MATTERS static __attribute__((section("msl_atomic_note"), used, retain)) char note

namespace metal {
template <class T> struct atomic {
  MSL_REFUSE((!is_same<T, int>::value && !is_same<T, uint>::value && !is_same<T, float>::value &&
              !is_same<T, bool>::value && !is_same<T, ulong>::value),
             "there are atomics of int, uint, bool, float and ulong only (MSL specification, Atomic Data Types)");
  T value;
};
// What a type has: with `arithmetic` one of add and sub, with `bits` any other change.
#define MSL_REQUIRE_ATOMIC(arithmetic, bits) \
  MSL_REFUSE((is_same<T, ulong>::value), "atomic_ulong has only atomic_min_explicit and atomic_max_explicit" \
             " (MSL specification, Atomic Functions)"); \
  MSL_REFUSE((is_same<T, float>::value && (bits)), "atomic_float has no such function, only load, store, exchange," \
             " compare_exchange, add and sub (MSL specification, Atomic Functions; SPIRV-Cross issue 2611)"); \
  MSL_REFUSE((is_same<T, bool>::value && ((arithmetic) || (bits))), "atomic_bool has only load, store, exchange and" \
             " compare_exchange (MSL specification, Atomic Functions)")
template <class T> using _atomic = atomic<T>;
typedef atomic<int> MSL_NAME(atomic_int);
typedef atomic<uint> MSL_NAME(atomic_uint);
typedef atomic<long> MSL_NAME(atomic_long);
typedef atomic<ulong> MSL_NAME(atomic_ulong);
// Metal's atomic_bool takes four bytes.
template <> struct alignas(4) atomic<bool> { bool value; };
typedef atomic<bool> MSL_NAME(atomic_bool);
typedef atomic<float> MSL_NAME(atomic_float);

#define MSL_FETCH(SPACE, name, bits, expression) \
  template <class T> \
  MSL_INLINE T atomic_fetch_##name##_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_REQUIRE_ATOMIC(true, bits); \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_loads | msl_stores); \
    T old = msl_value(p); \
    msl_change(p, (T)(expression)); \
    return old; \
  }
// Only the strict pass tells the address spaces apart.
#define MSL_ATOMICS(SPACE, in_threadgroup) \
  template <class T> MSL_UNCHECKED T msl_value(volatile const SPACE atomic<T>* p) { return p->value; } \
  template <class T> MSL_UNCHECKED void msl_change(volatile SPACE atomic<T>* p, remove_cv_t<T> x) { p->value = x; } \
  template <class T> MSL_INLINE T atomic_load_explicit(volatile const SPACE atomic<T>* p, MSL_NAME(memory_order)) { \
    MSL_REQUIRE_ATOMIC(false, false); \
    MSL_NOTE(msl_loads); \
    return msl_value(p); \
  } \
  template <class T> \
  MSL_INLINE void atomic_store_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_REQUIRE_ATOMIC(false, false); \
    static_assert(!(in_threadgroup) || !is_same<T, float>::value, "Metal: atomic_float is for device memory only" \
                  " (MSL specification, Atomic Data Types; SPIRV-Cross issue 2611)"); \
    MSL_NOTE(msl_stores); \
    msl_change(p, x); \
  } \
  template <class T> \
  MSL_INLINE T atomic_exchange_explicit(volatile SPACE atomic<T>* p, remove_cv_t<T> x, MSL_NAME(memory_order)) { \
    MSL_REQUIRE_ATOMIC(false, false); \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_stores); \
    T old = msl_value(p); \
    msl_change(p, x); \
    return old; \
  } \
  template <class T> \
  MSL_INLINE bool atomic_compare_exchange_weak_explicit(volatile SPACE atomic<T>* p, thread remove_cv_t<T>* expected, \
      remove_cv_t<T> desired, MSL_NAME(memory_order), MSL_NAME(memory_order)) { \
    MSL_REQUIRE_ATOMIC(false, false); \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_loads | msl_stores); \
    T old = msl_value(p); \
    /* bits decide, so that a NaN equals itself and +0 differs from -0 */ \
    bool same = __builtin_memcmp(&old, expected, sizeof(T)) == 0; \
    if (same) msl_change(p, desired); \
    else *expected = old; \
    return same; \
  } \
  MSL_FETCH(SPACE, add, false, old + x) MSL_FETCH(SPACE, sub, false, old - x) \
  MSL_FETCH(SPACE, min, true, x < old ? x : old) MSL_FETCH(SPACE, max, true, x > old ? x : old) \
  MSL_FETCH(SPACE, and, true, old & x) MSL_FETCH(SPACE, or, true, old | x) MSL_FETCH(SPACE, xor, true, old ^ x)
MSL_ATOMICS(device, false)
#ifdef MSL_STRICT
MSL_ATOMICS(threadgroup, true)
#endif
#undef MSL_ATOMICS
#undef MSL_FETCH
// Metal's 64-bit minimum and maximum return nothing.
#define MSL_CHANGE(name, op) \
  MSL_INLINE void atomic_##name##_explicit(volatile device atomic<ulong>* p, ulong x, MSL_NAME(memory_order)) { \
    MSL_ORDER_MATTERS; \
    MSL_NOTE(msl_loads | msl_stores); \
    if (x op msl_value(p)) msl_change(p, x); \
  }
MSL_CHANGE(min, <) MSL_CHANGE(max, >)
#undef MSL_CHANGE
#undef MSL_REQUIRE_ATOMIC
} // namespace metal
#undef MSL_NOTE
