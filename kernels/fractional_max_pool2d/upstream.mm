namespace {

#include "shared/fractional.h"
#include "shared/grid.h"
#include "shared/launch.h"
#include "shared/operands.h"
#include "shared/pooled_gradient.h"

void check_dtype(const Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "fractional_max_pool2d is not implemented for ", input.scalar_type(), " on MPS");
}

} // namespace

TORCH_IMPL_FUNC(fractional_max_pool2d_output_mps)
(const Tensor& self,
 IntArrayRef kernel_size,
 IntArrayRef output_size,
 const Tensor& random_samples,
 const Tensor& output,
 const Tensor& indices) {
  check_dtype(self);
  check_samples(random_samples, self, 2);
  if (output.numel() == 0) {
    return;
  }
  const auto values = output.is_contiguous() ? output : at::empty_like(output, MemoryFormat::Contiguous);
  const auto places = indices.is_contiguous() ? indices : at::empty_like(indices, MemoryFormat::Contiguous);
  const auto forward = fractional_forward(self, output_size, kernel_size);
  launch_grid(
      (forward.takes_rows ? "fractional_max_pool2d_rows_" : "fractional_max_pool2d_") + scalarToMetalTypeString(self),
      forward.threads, forward.group, values, places, self, random_samples.contiguous(), forward.geometry,
      forward.alpha);
  if (!values.is_same(output)) {
    output.copy_(values);
  }
  if (!places.is_same(indices)) {
    indices.copy_(places);
  }
}

TORCH_IMPL_FUNC(fractional_max_pool2d_backward_grad_input_mps)
(const Tensor& grad_output,
 const Tensor& self,
 IntArrayRef kernel_size,
 IntArrayRef output_size,
 const Tensor& indices,
 const Tensor& grad_input) {
  check_dtype(self);
  check_pooled_gradient(grad_output, self, output_size, indices, "fractional_max_pool2d_backward");
  globalContext().alertNotDeterministic("fractional_max_pool2d_backward"); // atomic additions
  const bool is_result = grad_input.scalar_type() == kFloat && grad_input.is_contiguous();
  const auto gradient =
      is_result ? grad_input : at::empty(self.sizes(), self.options().dtype(kFloat), MemoryFormat::Contiguous);
  gradient.zero_();
  if (grad_output.numel() != 0) {
    const std::array<int64_t, 3> shape = {
        output_size[0] * output_size[1], self.size(-2) * self.size(-1), grad_output.numel()};
    launch_elements(
        "fractional_max_pool2d_backward_" + scalarToMetalTypeString(self), grad_output.numel(), gradient,
        grad_output.contiguous(), indices.contiguous(), shape, getCurrentMPSStream()->getErrorBuffer());
  }
  if (!is_result) {
    grad_input.copy_(gradient);
  }
}
