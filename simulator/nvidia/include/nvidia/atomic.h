// metal_atomic with atomic operations of the GPU, or loops of compare and exchange.
#pragma once
#include "lanes.h"

namespace metal {
template <class T> struct atomic { T value; };
template <class T> using _atomic = atomic<T>;
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;
// Metal's atomic_bool takes four bytes.
template <> struct alignas(4) atomic<bool> { bool value; };
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

// The integer type that the GPU exchanges for a value; for a bool the four bytes around it.
template <uint BYTES> struct nvidia_word { typedef uint type; };
template <> struct nvidia_word<8> { typedef ulong type; };
template <class T> using nvidia_word_t = typename nvidia_word<sizeof(atomic<T>)>::type;
template <class T> MSL_INLINE nvidia_word_t<T> nvidia_bits(T x) {
  nvidia_word_t<T> bits = 0;
  __builtin_memcpy(&bits, &x, sizeof(T));
  return bits;
}
template <class T> MSL_INLINE T nvidia_value(nvidia_word_t<T> bits) {
  T x;
  __builtin_memcpy(&x, &bits, sizeof(T));
  return x;
}
template <class T> MSL_INLINE nvidia_word_t<T>* nvidia_place(volatile const atomic<T>* p) {
  return (nvidia_word_t<T>*)p;
}
#define NVIDIA_RELAXED __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE

template <class T> MSL_INLINE T atomic_load_explicit(volatile const atomic<T>* p, memory_order) {
  return nvidia_value<T>(__scoped_atomic_load_n(nvidia_place(p), NVIDIA_RELAXED));
}
template <class T> MSL_INLINE void atomic_store_explicit(volatile atomic<T>* p, remove_cv_t<T> x, memory_order) {
  __scoped_atomic_store_n(nvidia_place(p), nvidia_bits<T>(x), NVIDIA_RELAXED);
}
template <class T> MSL_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, remove_cv_t<T> x, memory_order) {
  return nvidia_value<T>(__scoped_atomic_exchange_n(nvidia_place(p), nvidia_bits<T>(x), NVIDIA_RELAXED));
}
template <class T>
MSL_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, remove_cv_t<T>* expected, remove_cv_t<T> desired, memory_order, memory_order) {
  nvidia_word_t<T> bits = nvidia_bits<T>(*expected);
  bool same = __scoped_atomic_compare_exchange_n(
      nvidia_place(p), &bits, nvidia_bits<T>(desired), true, __ATOMIC_RELAXED, NVIDIA_RELAXED);
  *expected = nvidia_value<T>(bits);
  return same;
}

template <class T, class F> MSL_INLINE T nvidia_exchange(volatile atomic<T>* p, F changed) {
  nvidia_word_t<T> old = __scoped_atomic_load_n(nvidia_place(p), NVIDIA_RELAXED);
  while (!__scoped_atomic_compare_exchange_n(
      nvidia_place(p), &old, nvidia_bits<T>(changed(nvidia_value<T>(old))), true, __ATOMIC_RELAXED, NVIDIA_RELAXED)) {
  }
  return nvidia_value<T>(old);
}
#define NVIDIA_FETCH(name, native, expression) \
  template <class T> \
  MSL_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* p, remove_cv_t<T> x, memory_order) { \
    if constexpr (native) return __scoped_atomic_fetch_##name((T*)&p->value, x, NVIDIA_RELAXED); \
    else return nvidia_exchange(p, [x](T old) { return (T)(expression); }); \
  }
#define NVIDIA_IS_WHOLE (!is_same<T, bool>::value && !is_same<T, float>::value)
NVIDIA_FETCH(add, (!is_same<T, bool>::value), old + x)
NVIDIA_FETCH(sub, NVIDIA_IS_WHOLE, old - x)
NVIDIA_FETCH(min, NVIDIA_IS_WHOLE, x < old ? x : old)
NVIDIA_FETCH(max, NVIDIA_IS_WHOLE, x > old ? x : old)
NVIDIA_FETCH(and, NVIDIA_IS_WHOLE, (long)old&(long)x)
NVIDIA_FETCH(or, NVIDIA_IS_WHOLE, (long)old | (long)x)
NVIDIA_FETCH(xor, NVIDIA_IS_WHOLE, (long)old ^ (long)x)
#undef NVIDIA_FETCH
#undef NVIDIA_IS_WHOLE
#undef NVIDIA_RELAXED
// Metal's 64-bit minimum and maximum return nothing.
MSL_INLINE void atomic_min_explicit(volatile atomic<ulong>* p, ulong x, memory_order o) {
  atomic_fetch_min_explicit(p, x, o);
}
MSL_INLINE void atomic_max_explicit(volatile atomic<ulong>* p, ulong x, memory_order o) {
  atomic_fetch_max_explicit(p, x, o);
}
} // namespace metal
