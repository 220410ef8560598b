// Loads and stores of 16 bytes: one scalar a thread reaches about half of a GPU's bandwidth, 16 bytes nearly all of it.
#include <metal_stdlib>
using namespace metal;

template <uint BYTES> struct bytes_of {};
template <> struct bytes_of<16> { using type = uint4; };
template <> struct bytes_of<8> { using type = uint2; };
template <> struct bytes_of<4> { using type = uint; };
template <> struct bytes_of<2> { using type = ushort; };
template <> struct bytes_of<1> { using type = uchar; };

// W values of T in registers, moved in one access; the address is a multiple of W * sizeof(T).
template <typename T, uint W> struct lanes {
  using raw_type = typename bytes_of<W * sizeof(T)>::type;
  alignas(raw_type) T value[W];

  static lanes load(device const T* from) {
    raw_type raw = *reinterpret_cast<device const raw_type*>(from);
    return *reinterpret_cast<thread lanes*>(&raw);
  }
  void store(device T* to) const {
    *reinterpret_cast<device raw_type*>(to) = *reinterpret_cast<thread const raw_type*>(this);
  }
};

// How many values of T make 16 bytes.
template <typename T> constexpr constant uint lane_count = 16 / sizeof(T);
