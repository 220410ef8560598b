#include <ATen/TensorIterator.h>
#include <ATen/native/IndexKernel.h>

namespace {

#include "shared/launch.h"

// Elements are moved as numbers of their size.
std::string moved_as(const TensorBase& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.scalar_type() != kDouble && self.element_size() <= 8, "no kernel on MPS for ", self.scalar_type());
  switch (self.element_size()) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

void take_kernel(TensorIterator& iter, const TensorBase& input) {
  const Tensor self(input);
  const Tensor out = iter.tensor(0);
  const Tensor index = iter.tensor(1);
  const auto result = out.is_contiguous() ? out : out.contiguous();
  launch_elements(
      "take_" + moved_as(self), index.numel(), result, self, index.contiguous(), packed_layout({self}), index.numel(),
      getCurrentMPSStream()->getErrorBuffer());
  if (!result.is_same(out)) {
    out.copy_(result);
  }
}

void put_kernel(TensorIterator& iter, const TensorBase& output, bool accumulate) {
  const Tensor self(output);
  const auto source = iter.tensor(0).contiguous();
  const auto index = iter.tensor(1).contiguous();
  TORCH_CHECK_INDEX(self.numel() != 0, "put_(): Expected self to be a non-empty tensor");
  const auto layout = packed_layout({self});
  const auto errors = getCurrentMPSStream()->getErrorBuffer();
  if (!accumulate) {
    launch_elements("put_" + moved_as(self), index.numel(), self, source, index, layout, index.numel(), errors);
    return;
  }
  // Atomic additions work on words: the kernel gets the start of the memory, and where the tensor begins in it.
  const int64_t elements = self.storage().nbytes() / self.element_size();
  launch_elements(
      "put_accumulate_" + scalarToMetalTypeString(self), index.numel(), self.as_strided({elements}, {1}, 0), source,
      index, layout, index.numel(), self.storage_offset(), errors);
}

} // namespace

REGISTER_DISPATCH(take_stub, &take_kernel)
REGISTER_DISPATCH(put_stub, &put_kernel)
