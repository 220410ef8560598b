// Sparse COO tensors: indices, values and whether they are coalesced.
#pragma once

#include <ATen/core/Tensor.h>

namespace mpsmith {

at::Tensor sparse_indices(const at::Tensor& sparse);
at::Tensor sparse_values(const at::Tensor& sparse);

// A sparse tensor of another backend, shaped like `like`, over the given parts.
at::Tensor sparse_with_parts_of(
    const at::Tensor& like, c10::DispatchKey backend, const at::Tensor& indices, const at::Tensor& values);

// Gives `sparse` the shape of `like` and these parts, unless it has them.
void replace_sparse_parts(
    const at::Tensor& sparse, const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values);

} // namespace mpsmith
