#include <ATen/WrapDimUtils.h>

namespace {

#include "shared/launch.h"

// Sorts along `dim` with torch's own kernel, then finds the longest run of every row; the outputs are contiguous.
void fill(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) {
    return;
  }
  if (self.dim() == 0) {
    values.copy_(self);
    indices.zero_();
    return;
  }
  if (self.scalar_type() == kBool) {
    auto found = at::empty(values.sizes(), values.options().dtype(kByte));
    fill(self.to(kByte), dim, found, indices);
    values.copy_(found);
    return;
  }
  const auto rows = self.movedim(dim, -1).contiguous();
  const auto [ordered, positions] = at::sort(rows, /*stable=*/true, /*dim=*/-1, /*descending=*/false);
  const auto size = rows.size(-1);
  launch_rows(
      "mode_" + scalarToMetalTypeString(self), values.numel(), row_group(size), values, indices, ordered.contiguous(),
      positions.contiguous(), static_cast<int>(size));
}

// The dimension, counted from the front, and the shape of the result.
std::pair<int64_t, DimVector> reduced(const Tensor& self, int64_t dim, bool keepdim) {
  dim = maybe_wrap_dim(dim, self.dim());
  DimVector shape(self.sizes());
  if (self.dim() == 0) {
    return {0, shape};
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      !self.is_complex() && self.scalar_type() != kDouble, "mode is not implemented for ", self.scalar_type(),
      " on MPS");
  TORCH_CHECK_INDEX(self.size(dim) != 0, "mode(): Expected reduction dim ", dim, " to have non-zero size.");
  if (keepdim) {
    shape[dim] = 1;
  } else {
    shape.erase(shape.begin() + dim);
  }
  return {dim, shape};
}

} // namespace

std::tuple<Tensor, Tensor> mode_mps(const Tensor& self, int64_t dim, bool keepdim) {
  const auto [wrapped, shape] = reduced(self, dim, keepdim);
  auto values = at::empty(shape, self.options());
  auto indices = at::empty(shape, self.options().dtype(kLong));
  fill(self, wrapped, values, indices);
  return {values, indices};
}

std::tuple<Tensor&, Tensor&> mode_values_mps(
    const Tensor& self, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  TORCH_CHECK(
      values.scalar_type() == self.scalar_type(), "expected scalar type '", self.scalar_type(), "' but got '",
      values.scalar_type(), "' for values output");
  TORCH_CHECK(
      indices.scalar_type() == kLong, "expected scalar type 'Long' but got '", indices.scalar_type(),
      "' for indices output");
  const auto [found, positions] = mode_mps(self, dim, keepdim);
  resize_output(values, found.sizes());
  resize_output(indices, found.sizes());
  assert_no_internal_overlap(values);
  assert_no_internal_overlap(indices);
  values.copy_(found);
  indices.copy_(positions);
  return {values, indices};
}
