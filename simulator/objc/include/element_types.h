// The element types of numbers, in the numbering of HOST_NUMBERS (simulator.metal.element_types). They tell a kernel that
// reads float from one that is given half.
#pragma once
#include <stdint.h>
#ifdef __cplusplus
#include <cstddef>
#include <type_traits>

namespace c10 {
struct Half;
struct BFloat16;
} // namespace c10

enum SimulatedElementType : uint32_t {
  kElementUnknown,
  kElementHalf,
  kElementBFloat,
  kElementFloat,
  kElementInt16,
  kElementInt32,
  kElementInt64,
  kElementDouble
};

template <typename T>
constexpr SimulatedElementType simulated_element_type_of() {
  using Element = std::remove_cv_t<std::remove_all_extents_t<T>>;
  if (std::is_same_v<Element, c10::Half> || std::is_same_v<Element, _Float16>) {
    return kElementHalf;
  }
  if (std::is_same_v<Element, c10::BFloat16>) {
    return kElementBFloat;
  }
  if (std::is_same_v<Element, float>) {
    return kElementFloat;
  }
  if (std::is_same_v<Element, double>) {
    return kElementDouble;
  }
  if constexpr (std::is_integral_v<Element>) {
    return sizeof(Element) == 2 ? kElementInt16
        : sizeof(Element) == 4  ? kElementInt32
        : sizeof(Element) == 8  ? kElementInt64
                                : kElementUnknown;
  }
  return kElementUnknown;
}

// What is passed to setBytes:, a pointer that knows the type of its numbers: in its first byte, which no address of a
// process uses. metal-cpp passes the pointer alone.
struct SimulatedBytes {
  uint64_t packed;
  SimulatedBytes(std::nullptr_t) : packed(0) {}
  template <typename T>
  SimulatedBytes(const T* numbers)
      : packed(reinterpret_cast<uint64_t>(numbers) | uint64_t{simulated_element_type_of<T>()} << 56) {}
  const void* address() const { return reinterpret_cast<const void*>(packed << 8 >> 8); }
  uint64_t element_type() const { return packed >> 56; }
};
#endif
