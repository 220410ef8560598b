// Linked into each extension, where these definitions replace those of torch's headers: what an extension gets from a
// tensor on mps. Declared here as torch does, for the names of the symbols alone.
#include <stdint.h>

#include "../metal/tensor_memory.h"

namespace c10 {
struct Half;
struct BFloat16;
template <typename T>
struct complex;
struct Storage;
} // namespace c10

extern "C" const void* mpsmith_storage_of(const void* tensor);
extern "C" void* mpsmith_data_of(const void* tensor, int mutable_data);
#define DECLARED(TYPE, NAME) extern "C" void* mpsmith_data_of_##NAME(const void* tensor, int mutable_data);
FOR_ELEMENT_TYPES(DECLARED)

namespace at {

class __attribute__((visibility("hidden"))) TensorBase {
 public:
  const c10::Storage& storage() const;
  const void* const_data_ptr() const;
  void* mutable_data_ptr() const;
  void* data_ptr() const;
  template <typename T>
  const T* const_data_ptr() const;
  template <typename T>
  T* mutable_data_ptr() const;
  template <typename T>
  T* data_ptr() const;
};

const c10::Storage& TensorBase::storage() const { return *static_cast<const c10::Storage*>(mpsmith_storage_of(this)); }
const void* TensorBase::const_data_ptr() const { return mpsmith_data_of(this, 0); }
void* TensorBase::mutable_data_ptr() const { return mpsmith_data_of(this, 1); }
void* TensorBase::data_ptr() const { return mpsmith_data_of(this, 1); }

#define DEFINED(TYPE, NAME) \
  template <> \
  const TYPE* TensorBase::const_data_ptr<TYPE>() const { \
    return static_cast<const TYPE*>(mpsmith_data_of_##NAME(this, 0)); \
  } \
  template <> \
  const TYPE* TensorBase::const_data_ptr<const TYPE>() const { \
    return static_cast<const TYPE*>(mpsmith_data_of_##NAME(this, 0)); \
  } \
  template <> \
  TYPE* TensorBase::mutable_data_ptr<TYPE>() const { \
    return static_cast<TYPE*>(mpsmith_data_of_##NAME(this, 1)); \
  } \
  template <> \
  TYPE* TensorBase::data_ptr<TYPE>() const { \
    return static_cast<TYPE*>(mpsmith_data_of_##NAME(this, 1)); \
  }
FOR_ELEMENT_TYPES(DEFINED)

} // namespace at
