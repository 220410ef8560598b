#include "registration.h"

#include "allocator.h"
#include "counters.h"
#include "device.h"

#include <ATen/EmptyTensor.h>

namespace mpsmith {
namespace {

constexpr size_t kMaxDimensions = 16;
const c10::DispatchKeySet kDeviceKeys(c10::DispatchKey::MPS);

c10::ScalarType checked_dtype(std::optional<c10::ScalarType> dtype) {
  const auto chosen = dtype.value_or(c10::get_default_dtype_as_scalartype());
  check_dtype_allocatable(chosen);
  return chosen;
}

void check_dimensions(size_t dimensions) {
  TORCH_CHECK(
      dimensions <= kMaxDimensions, "MPS supports tensors with dimensions <= ", kMaxDimensions, ", but got ",
      dimensions, ".");
}

at::Tensor empty(
    at::IntArrayRef size,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device>,
    std::optional<bool>,
    std::optional<c10::MemoryFormat> memory_format) {
  static Counter& counter = counter_for("aten::empty.memory_format");
  counter.count(Outcome::native);
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout.value_or(c10::kStrided) == c10::kStrided, "only strided tensors are supported on MPS");
  check_dimensions(size.size());
  return at::detail::empty_generic(size, device_allocator(), kDeviceKeys, checked_dtype(dtype), memory_format);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout>,
    std::optional<c10::Device>,
    std::optional<bool>) {
  static Counter& counter = counter_for("aten::empty_strided");
  counter.count(Outcome::native);
  check_dimensions(size.size());
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kDeviceKeys, checked_dtype(dtype));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& destination, bool non_blocking) {
  static Counter& counter = counter_for("aten::_copy_from");
  counter.count(Outcome::native);
  destination.copy_(self, non_blocking);
  return destination;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& destination) {
  static Counter& counter = counter_for("aten::_copy_from_and_resize");
  counter.count(Outcome::native);
  if (destination.sizes() != self.sizes()) {
    destination.resize_(self.sizes());
  }
  destination.copy_(self);
  return destination;
}

} // namespace

void register_factories(torch::Library& mps) {
  mps.impl("empty.memory_format", TORCH_FN(empty));
  mps.impl("empty_strided", TORCH_FN(empty_strided));
  mps.impl("_copy_from", TORCH_FN(copy_from));
  mps.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
}

} // namespace mpsmith
