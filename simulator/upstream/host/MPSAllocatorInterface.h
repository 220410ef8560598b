// The allocator as backend.mm has it, for trees older than its interface, and what their host code asks of it.
#pragma once
#include <ATen/mps/MPSStream.h>
#include <c10/core/Allocator.h>
#include <c10/util/Registry.h>

namespace at::mps {

class IMPSAllocator : public c10::Allocator {
 public:
  virtual ssize_t getUnalignedBufferSize(const void* pointer) const = 0;
  virtual IntArrayRef getBufferShape(const void* pointer) const = 0;
  virtual void setBufferShape(const void* pointer, const IntArrayRef& shape) const = 0;
  virtual c10::DataPtr allocScalarBufferWithValue(void* value, size_t size) const = 0;
};

class IMpsAllocatorCallback {
 public:
  enum class EventType { ALLOCATED, RECYCLED, FREED, RELEASED };
  virtual ~IMpsAllocatorCallback() = default;
  virtual void executeMPSAllocatorCallback(void* pointer, EventType event) = 0;
};
C10_DECLARE_REGISTRY(MPSAllocatorCallbacksRegistry, IMpsAllocatorCallback);
#define REGISTER_MPS_ALLOCATOR_CALLBACK(name, ...) C10_REGISTER_CLASS(MPSAllocatorCallbacksRegistry, name, __VA_ARGS__)

IMPSAllocator* getIMPSAllocator(bool shared = false);
bool isMPSPinnedPtr(const void* data);

inline ssize_t get_requested_buffer_size(const void* pointer) {
  return getIMPSAllocator()->getUnalignedBufferSize(pointer);
}
inline IntArrayRef get_buffer_shape(const void* pointer) { return getIMPSAllocator()->getBufferShape(pointer); }
inline void set_buffer_shape(const void* pointer, const IntArrayRef& shape) {
  getIMPSAllocator()->setBufferShape(pointer, shape);
}
inline DataPtr allocate_scalar_buffer(void* value, size_t size) {
  return getIMPSAllocator()->allocScalarBufferWithValue(value, size);
}

} // namespace at::mps
