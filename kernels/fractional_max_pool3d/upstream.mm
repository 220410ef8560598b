namespace {

#include "shared/fractional.h"
#include "shared/grid.h"
#include "shared/launch.h"
#include "shared/operands.h"
#include "shared/pooled_gradient.h"

void check_dtype(const Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "fractional_max_pool3d is not implemented for ", input.scalar_type(), " on MPS");
}

} // namespace

TORCH_IMPL_FUNC(fractional_max_pool3d_output_mps)
(const Tensor& self,
 int64_t poolSizeT,
 int64_t poolSizeH,
 int64_t poolSizeW,
 int64_t outputT,
 int64_t outputH,
 int64_t outputW,
 const Tensor& random_samples,
 int64_t numBatch,
 int64_t numPlanes,
 int64_t inputT,
 int64_t inputH,
 int64_t inputW,
 const Tensor& output,
 const Tensor& indices) {
  check_dtype(self);
  check_samples(random_samples, self, 3);
  if (output.numel() == 0) {
    return;
  }
  const auto values = output.is_contiguous() ? output : at::empty_like(output, MemoryFormat::Contiguous);
  const auto places = indices.is_contiguous() ? indices : at::empty_like(indices, MemoryFormat::Contiguous);
  const auto forward = fractional_forward(self, {outputT, outputH, outputW}, {poolSizeT, poolSizeH, poolSizeW});
  launch_grid(
      (forward.takes_rows ? "fractional_max_pool3d_rows_" : "fractional_max_pool3d_") + scalarToMetalTypeString(self),
      forward.threads, forward.group, values, places, self, random_samples.contiguous(), forward.geometry,
      forward.alpha);
  if (!values.is_same(output)) {
    output.copy_(values);
  }
  if (!places.is_same(indices)) {
    indices.copy_(places);
  }
}

Tensor& fractional_max_pool3d_backward_grad_input_mps(
    const Tensor& grad_output,
    const Tensor& self,
    IntArrayRef kernel_size,
    IntArrayRef output_size,
    const Tensor& indices,
    Tensor& grad_input) {
  check_dtype(self);
  TORCH_CHECK(
      grad_output.dim() == self.dim() && (self.dim() == 4 || self.dim() == 5),
      "fractional_max_pool3d_backward_out(): expected grad_output of the dimensions of input");
  check_pooled_gradient(grad_output, self, output_size, indices, "fractional_max_pool3d_backward_out");
  globalContext().alertNotDeterministic("fractional_max_pool3d_backward"); // atomic additions
  require_scalar_type(grad_input, self.scalar_type());
  resize_output(grad_input, self.sizes());
  assert_no_internal_overlap(grad_input);
  const bool is_result = grad_input.scalar_type() == kFloat && grad_input.is_contiguous();
  const auto gradient =
      is_result ? grad_input : at::empty(self.sizes(), self.options().dtype(kFloat), MemoryFormat::Contiguous);
  gradient.zero_();
  if (grad_output.numel() != 0) {
    const std::array<int64_t, 3> shape = {
        output_size[0] * output_size[1] * output_size[2], self.size(-3) * self.size(-2) * self.size(-1),
        grad_output.numel()};
    launch_elements(
        "fractional_max_pool3d_backward_" + scalarToMetalTypeString(self), grad_output.numel(), gradient,
        grad_output.contiguous(), indices.contiguous(), shape, getCurrentMPSStream()->getErrorBuffer());
  }
  if (!is_result) {
    grad_input.copy_(gradient);
  }
  return grad_input;
}

Tensor fractional_max_pool3d_backward_mps(
    const Tensor& grad_output,
    const Tensor& self,
    IntArrayRef kernel_size,
    IntArrayRef output_size,
    const Tensor& indices) {
  auto grad_input = at::empty(self.sizes(), self.options());
  return fractional_max_pool3d_backward_grad_input_mps(
      grad_output, self, kernel_size, output_size, indices, grad_input);
}
