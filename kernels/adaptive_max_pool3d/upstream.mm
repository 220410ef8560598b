namespace {

#include "shared/launch.h"
#include "shared/operands.h"
#include "shared/pooled_gradient.h"
#include "shared/pooling.h"

void check_dtype(const Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "adaptive_max_pool3d is not implemented for ", input.scalar_type(), " on MPS");
}

Tensor contiguous_like(const Tensor& out) {
  return out.is_contiguous() ? out : at::empty_like(out, MemoryFormat::Contiguous);
}

} // namespace

TORCH_IMPL_FUNC(adaptive_max_pool3d_out_mps)
(const Tensor& self, IntArrayRef output_size, const Tensor& out, const Tensor& indices) {
  check_dtype(self);
  if (out.numel() == 0) {
    return;
  }
  const auto values = contiguous_like(out), places = contiguous_like(indices);
  const auto inputs = self.sizes().slice(self.dim() - 3);
  const auto geometry = pooling_geometry(self, inputs, output_size);
  const auto suffix = scalarToMetalTypeString(self);
  if (has_large_windows(inputs, output_size)) {
    launch_rows("adaptive_max_pool3d_large_" + suffix, out.numel(), large_window, values, places, self, geometry);
  } else {
    launch_elements("adaptive_max_pool3d_" + suffix, out.numel(), values, places, self, geometry);
  }
  if (!values.is_same(out)) {
    out.copy_(values);
  }
  if (!places.is_same(indices)) {
    indices.copy_(places);
  }
}

TORCH_IMPL_FUNC(adaptive_max_pool3d_backward_grad_input_mps)
(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& grad_input) {
  check_dtype(self);
  TORCH_CHECK(
      grad_output.scalar_type() == self.scalar_type(), "expected dtype ", self.scalar_type(),
      " for `grad_output` but got dtype ", grad_output.scalar_type());
  const auto outputs = grad_output.sizes().slice(grad_output.dim() - 3);
  check_pooled_gradient(grad_output, self, outputs, indices, "adaptive_max_pool3d_backward");
  if (grad_input.numel() == 0) {
    return;
  }
  const auto gradient = contiguous_like(grad_input);
  const auto geometry = pooling_geometry(grad_output, self.sizes().slice(self.dim() - 3), outputs);
  launch_elements(
      "adaptive_max_pool3d_backward_" + scalarToMetalTypeString(self), gradient.numel(), gradient,
      grad_output.contiguous(), indices.contiguous(), geometry);
  if (!gradient.is_same(grad_input)) {
    grad_input.copy_(gradient);
  }
}
