// On a Mac, data_ptr() of an mps tensor is an MTLBuffer, whose address holds no numbers. Here it is an address without
// memory, so that host code which follows it faults. As an object it is the buffer of the tensor.
#pragma once
#include <cstdint>

namespace mpsmith {

// Linux maps nothing that far below the stack, the libraries and the heap.
constexpr uintptr_t kApart = uintptr_t(1) << 44;

inline void* address_apart(const void* memory) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory) ^ kApart);
}
inline void* host_address(const void* apart) { return address_apart(apart); }

} // namespace mpsmith

// The element types that a tensor on mps can have, with a name.
// clang-format off
#define FOR_ELEMENT_TYPES(OF) \
  OF(uint8_t, byte)           \
  OF(int8_t, char)            \
  OF(int16_t, short)          \
  OF(int, int)                \
  OF(int64_t, long)           \
  OF(uint16_t, ushort)        \
  OF(uint32_t, uint)          \
  OF(uint64_t, ulong)         \
  OF(float, float)            \
  OF(bool, bool)              \
  OF(c10::Half, half)         \
  OF(c10::BFloat16, bfloat)   \
  OF(c10::complex<float>, complex)
// clang-format on
