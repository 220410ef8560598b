// Functions on tensors for upstream's host code. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/Copy.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>

#include <cstring>

namespace at::native::mps {

size_t compute_storage_numel_distance(const TensorBase& t) {
  if (t.numel() == 0) {
    return 0;
  }
  size_t elements = 1;
  for (const auto d : c10::irange(t.dim())) {
    elements += (t.size(d) - 1) * t.stride(d);
  }
  return elements;
}

// The simulated device copies. Commands on torch's stream have already run.
Tensor& mps_copy_(Tensor& to, const Tensor& from, bool non_blocking) { return to.copy_(from, non_blocking); }

void copy_blit_mps(void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }

Tensor gatherViewTensor(const Tensor& view, Tensor& whole) {
  Tensor gathered = whole.has_storage() ? whole : at::empty(view.sizes(), view.options());
  return gathered.copy_(view);
}

Tensor& scatterViewTensor(const Tensor& whole, Tensor& view) { return view.copy_(whole); }

} // namespace at::native::mps
