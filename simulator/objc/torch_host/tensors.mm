// What upstream's host code asks of tensors. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

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

} // namespace at::native::mps
