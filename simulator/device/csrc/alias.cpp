#include "alias.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "allocator.h"
#include "device.h"
#include "metal_host.h"
#include "sparse.h"

namespace mpsmith {
namespace {

c10::DispatchKeySet keys_of(c10::DispatchKey backend, const at::Tensor& like) {
  // A ZeroTensor must be created as one: _set_zero(true) asserts.
  const c10::DispatchKeySet keys(backend);
  return like._is_zerotensor() ? keys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor) : keys;
}

// A strided tensor of the given backend over `storage` with the sizes, strides and flags of `like`.
at::Tensor tensor_like(const at::Tensor& like, c10::Storage storage, c10::DispatchKey backend) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys_of(backend, like), like.dtype());
  auto* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) {
    impl->_set_conj(true);
  }
  if (like.is_neg()) {
    impl->_set_neg(true);
  }
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return made;
}

bool same(const c10::Storage& a, const c10::Storage& b) { return a.unsafeGetStorageImpl() == b.unsafeGetStorageImpl(); }

void* data_of(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
}

c10::Storage storage_over(c10::DataPtr data, size_t bytes, c10::Allocator* allocator, bool resizable) {
  return c10::Storage(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), bytes, std::move(data), allocator, resizable));
}

} // namespace

c10::Storage AliasScope::to_host(const c10::Storage& storage) {
  for (const auto& pair : storages_) {
    if (same(pair.original, storage)) {
      return pair.alias;
    }
  }
  void* data = data_of(storage);
  c10::Storage alias = storage_over(
      c10::DataPtr(data, data, &c10::detail::deleteNothing, host_device()), storage.nbytes(), alias_allocator(),
      storage.unsafeGetStorageImpl()->resizable());
  storages_.push_back({storage, alias});
  return alias;
}

at::Tensor AliasScope::to_host(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (!tensor.device().is_mps()) {
    host_arguments_.push_back(tensor.unsafeGetTensorImpl());
    return tensor;
  }
  for (const auto& pair : tensors_) {
    if (pair.original.is_same(tensor)) {
      return pair.alias;
    }
  }
  raise_misuse();
  at::Tensor alias;
  if (tensor.layout() == c10::kSparse) {
    alias = sparse_with_parts_of(
        tensor, c10::DispatchKey::SparseCPU, to_host(sparse_indices(tensor)), to_host(sparse_values(tensor)));
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(
        tensor.layout() == c10::kStrided, "The simulated mps device has no tensors of layout ", tensor.layout());
    alias = tensor_like(tensor, to_host(tensor.storage()), c10::DispatchKey::CPU);
  }
  tensors_.push_back({tensor, alias});
  return alias;
}

c10::Storage AliasScope::to_device(const c10::Storage& storage) {
  for (const auto& pair : storages_) {
    if (same(pair.alias, storage)) {
      return pair.original;
    }
  }
  c10::Storage device = storage_over(device_pointer_to(storage), storage.nbytes(), device_allocator(), true);
  storages_.push_back({device, storage});
  return device;
}

at::Tensor AliasScope::to_device(const at::Tensor& result) {
  if (!result.defined() || !result.device().is_cpu()) {
    return result;
  }
  for (const auto& pair : tensors_) {
    if (pair.alias.is_same(result)) {
      return pair.original;
    }
  }
  for (const auto* argument : host_arguments_) {
    if (argument == result.unsafeGetTensorImpl()) {
      return result;
    }
  }
  if (result.layout() == c10::kSparse) {
    return sparse_with_parts_of(
        result, c10::DispatchKey::SparseMPS, to_device(sparse_indices(result)), to_device(sparse_values(result)));
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      result.layout() == c10::kStrided, "The simulated mps device has no tensors of layout ", result.layout());
  // A view of complex128 memory is allowed; a computed result is not.
  if (result.scalar_type() != c10::ScalarType::ComplexDouble || !is_aliased(result.storage())) {
    check_dtype_of_result(result.scalar_type());
  }
  c10::Storage storage = to_device(result.storage());
  // In inference mode a view of a normal tensor is a normal tensor; only new memory makes an inference tensor.
  std::optional<c10::InferenceMode> normal_mode;
  if (c10::InferenceMode::is_enabled() && is_of_normal_tensor(storage)) {
    normal_mode.emplace(false);
  }
  at::Tensor made = tensor_like(result, std::move(storage), c10::DispatchKey::MPS);
  tensors_.push_back({made, result});
  return made;
}

bool AliasScope::is_aliased(const c10::Storage& host) const {
  return std::any_of(storages_.begin(), storages_.end(), [&](const auto& pair) { return same(pair.alias, host); });
}

bool AliasScope::is_of_normal_tensor(const c10::Storage& storage) const {
  for (const auto& pair : tensors_) {
    if (pair.original.layout() == c10::kStrided && same(pair.original.storage(), storage)) {
      return !pair.original.is_inference();
    }
  }
  return false;
}

void AliasScope::propagate_storage(const AliasedStorage& pair) {
  auto* original = pair.original.unsafeGetStorageImpl();
  auto* alias = pair.alias.unsafeGetStorageImpl();
  const size_t bytes = alias->nbytes();
  if (data_of(pair.alias) == data_of(pair.original)) {
    if (bytes != original->nbytes()) {
      original->set_nbytes(bytes);
    }
    return;
  }
  // The kernel replaced the memory; the original still owns the old block.
  c10::DataPtr replaced = alias->set_data_ptr(c10::DataPtr(nullptr, host_device()));
  void* data = replaced.get();
  auto* deleter = replaced.get_deleter();
  void* context = replaced.release_context();
  original->set_data_ptr_noswap(c10::DataPtr(data, context, deleter, simulated_device()));
  original->set_nbytes(bytes);
}

void AliasScope::propagate_tensor(const AliasedTensor& pair) {
  auto* original = pair.original.unsafeGetTensorImpl();
  const at::Tensor& alias = pair.alias;
  if (alias.layout() == c10::kSparse) {
    replace_sparse_parts(pair.original, alias, to_device(sparse_indices(alias)), to_device(sparse_values(alias)));
    return;
  }
  const c10::Storage wanted = to_device(alias.storage());
  if (!same(wanted, pair.original.storage())) {
    original->set_storage_keep_dtype(wanted);
  }
  if (alias.sizes() != pair.original.sizes() || alias.strides() != pair.original.strides() ||
      alias.storage_offset() != pair.original.storage_offset()) {
    original->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
  }
}

void AliasScope::propagate_changes() {
  // Both lists grow in this loop (a tensor may have been set_ to a new storage), hence copies and indices.
  for (size_t i = 0, count = storages_.size(); i < count; i++) {
    propagate_storage(storages_[i]);
  }
  for (size_t i = 0, count = tensors_.size(); i < count; i++) {
    const AliasedTensor pair = tensors_[i];
    propagate_tensor(pair);
  }
}

} // namespace mpsmith
