#include "sparse.h"

#include <ATen/SparseTensorImpl.h>

namespace mpsmith {
namespace {

at::SparseTensorImpl* sparse_impl(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

void set_parts(
    at::SparseTensorImpl* impl, const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values) {
  const auto* source = sparse_impl(like);
  impl->raw_resize_(source->sparse_dim(), source->dense_dim(), like.sizes());
  impl->set_indices_and_values_unsafe(indices, values);
  impl->set_coalesced(source->coalesced());
}

} // namespace

at::Tensor sparse_indices(const at::Tensor& sparse) { return sparse_impl(sparse)->indices(); }

at::Tensor sparse_values(const at::Tensor& sparse) { return sparse_impl(sparse)->values(); }

at::Tensor sparse_with_parts_of(
    const at::Tensor& like, c10::DispatchKey backend, const at::Tensor& indices, const at::Tensor& values) {
  at::Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(backend), like.dtype());
  set_parts(sparse_impl(made), like, indices, values);
  return made;
}

void replace_sparse_parts(
    const at::Tensor& sparse, const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values) {
  auto* impl = sparse_impl(sparse);
  const bool unchanged = impl->indices().is_same(indices) && impl->values().is_same(values) &&
      sparse.sizes() == like.sizes() && impl->coalesced() == sparse_impl(like)->coalesced();
  if (!unchanged) {
    set_parts(impl, like, indices, values);
  }
}

} // namespace mpsmith
