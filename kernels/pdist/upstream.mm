namespace {

#include "shared/grid.h"
#include "shared/operands.h"

constexpr int64_t vector_bytes = 16; // what a thread reads at a time, where each row begins at a multiple
constexpr int64_t long_row = 64; // from here on a SIMD group computes a pair

void check(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
}

} // namespace

Tensor _pdist_forward_mps(const Tensor& self, double p) {
  check(self);
  const auto rows = self.size(0), columns = self.size(1);
  auto out = at::empty({rows * (rows - 1) / 2}, self.options());
  if (out.numel() == 0) {
    return out;
  }
  if (columns == 0) {
    return out.zero_();
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "pdist is not implemented for ", self.scalar_type(), " on MPS");
  const auto suffix = scalarToMetalTypeString(self);
  const auto x = self.contiguous();
  const int64_t lanes = vector_bytes / x.element_size();
  const bool in_vectors = columns % lanes == 0 && x.storage_offset() % lanes == 0;
  const std::array<int64_t, 3> shape = {rows, columns, in_vectors};
  if (columns >= long_row) {
    launch_grid("pdist_large_" + suffix, MTLSizeMake(rows * 32, rows, 1), MTLSizeMake(32, 1, 1), out, x, p, shape);
  } else {
    launch_grid("pdist_" + suffix, MTLSizeMake(rows, rows, 1), MTLSizeMake(32, 8, 1), out, x, p, shape);
  }
  return out;
}

Tensor _pdist_backward_mps(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  check(self);
  auto result = at::empty(self.sizes(), self.options());
  const auto rows = self.size(0), columns = self.size(1);
  if (rows < 2 || columns == 0) {
    return result.zero_();
  }
  const int64_t pairs = rows * (rows - 1) / 2;
  require_scalar_type(grad, self.scalar_type());
  require_sizes(grad, pairs, "grad");
  require_scalar_type(pdist, self.scalar_type());
  require_sizes(pdist, pairs, "pdist");
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "pdist is not implemented for ", self.scalar_type(), " on MPS");
  launch_grid(
      "pdist_backward_" + scalarToMetalTypeString(self), MTLSizeMake(columns, rows, 1), MTLSizeMake(32, 8, 1), result,
      grad.contiguous(), self.contiguous(), pdist.contiguous(), p, std::array<int64_t, 2>{rows, columns});
  return result;
}
