// CPU aliases of mps tensors: CPU kernels run on the memory of the mps tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

namespace mpsmith {

// The aliases of one operator call. Tensors that share a storage get aliases that share one, and the same tensor
// passed twice gets the same alias, so that the CPU kernel sees every overlap.
class AliasScope {
 public:
  AliasScope() = default;
  AliasScope(const AliasScope&) = delete;
  AliasScope& operator=(const AliasScope&) = delete;

  // The CPU alias of an mps tensor; CPU tensors and undefined ones do not change.
  at::Tensor to_host(const at::Tensor& tensor);
  c10::Storage to_host(const c10::Storage& storage);

  // The mps tensor for a result of the CPU kernel: the original of an alias, a view of an original's storage, or a new
  // mps tensor with the result's memory.
  at::Tensor to_device(const at::Tensor& result);

  // Copies changed metadata to the originals: sizes, strides, storage (resize_, set_, out=).
  void propagate_changes();

  bool has_device_tensor() const { return !tensors_.empty(); }

 private:
  struct AliasedTensor {
    at::Tensor original;
    at::Tensor alias;
  };
  struct AliasedStorage {
    c10::Storage original;
    c10::Storage alias;
  };

  c10::Storage to_device(const c10::Storage& storage);
  bool is_aliased(const c10::Storage& host) const;
  bool is_of_normal_tensor(const c10::Storage& storage) const;
  void propagate_storage(const AliasedStorage& pair);
  void propagate_tensor(const AliasedTensor& pair);

  c10::SmallVector<AliasedTensor, 4> tensors_;
  c10::SmallVector<AliasedStorage, 4> storages_;
  c10::SmallVector<c10::TensorImpl*, 2> host_arguments_;
};

} // namespace mpsmith
