// Atomic addition for every dtype of mps. Metal adds 32-bit words (int, uint, float); the others are made of them.
//
// `base` is the start of a buffer, aligned to 4 bytes, and `index` counts elements from there: a tensor's own offset
// may stand in the middle of a word.
#include <metal_stdlib>
using namespace metal;

template <typename T> struct atomic_adder {
  // Types of 1 and 2 bytes: swap the word around the element until no other thread changed it in between.
  static void add(device T* base, ulong index, T value) {
    constexpr ulong PER_WORD = 4 / sizeof(T);
    constexpr uint BITS = 8 * sizeof(T);
    constexpr uint MASK = (1u << BITS) - 1u;
    device atomic_uint* word = reinterpret_cast<device atomic_uint*>(base) + index / PER_WORD;
    const uint shift = uint(index % PER_WORD) * BITS;
    uint before = atomic_load_explicit(word, memory_order_relaxed);
    uint after;
    do {
      const uint bits = as_bits(sum(from_bits((before >> shift) & MASK), value));
      after = (before & ~(MASK << shift)) | (bits << shift);
    } while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed, memory_order_relaxed));
  }

 private:
  static T sum(T a, T b) { return T(float(a) + float(b)); }
  static T from_bits(uint bits) { return as_type<T>(ushort(bits)); }
  static uint as_bits(T value) { return uint(as_type<ushort>(value)); }
};

#define SMALL_INTEGER(T, UNSIGNED) \
  template <> inline T atomic_adder<T>::sum(T a, T b) { return T(a + b); } \
  template <> inline T atomic_adder<T>::from_bits(uint bits) { return T(bits); } \
  template <> inline uint atomic_adder<T>::as_bits(T value) { return uint(UNSIGNED(value)); }
SMALL_INTEGER(short, ushort)
SMALL_INTEGER(char, uchar)
SMALL_INTEGER(uchar, uchar)

// The sum of truth values is "or".
template <> inline bool atomic_adder<bool>::sum(bool a, bool b) { return a || b; }
template <> inline bool atomic_adder<bool>::from_bits(uint bits) { return bits != 0; }
template <> inline uint atomic_adder<bool>::as_bits(bool value) { return value ? 1u : 0u; }

template <> struct atomic_adder<float> {
  static void add(device float* base, ulong index, float value) {
    atomic_fetch_add_explicit(reinterpret_cast<device atomic_float*>(base) + index, value, memory_order_relaxed);
  }
};

template <> struct atomic_adder<float2> {
  static void add(device float2* base, ulong index, float2 value) {
    device atomic_float* part = reinterpret_cast<device atomic_float*>(base) + 2 * index;
    atomic_fetch_add_explicit(part, value.x, memory_order_relaxed);
    atomic_fetch_add_explicit(part + 1, value.y, memory_order_relaxed);
  }
};

template <> struct atomic_adder<int> {
  static void add(device int* base, ulong index, int value) {
    atomic_fetch_add_explicit(reinterpret_cast<device atomic_int*>(base) + index, value, memory_order_relaxed);
  }
};

// The low word, then what it carries into the high one. In between the memory holds half a sum, but no thread reads it, and
// the order of the additions does not change their total.
template <> struct atomic_adder<long> {
  static void add(device long* base, ulong index, long value) {
    device atomic_uint* low = reinterpret_cast<device atomic_uint*>(base) + 2 * index;
    const uint low_value = uint(ulong(value));
    const uint before = atomic_fetch_add_explicit(low, low_value, memory_order_relaxed);
    const uint carry = before + low_value < before ? 1u : 0u;
    atomic_fetch_add_explicit(low + 1, uint(ulong(value) >> 32) + carry, memory_order_relaxed);
  }
};
