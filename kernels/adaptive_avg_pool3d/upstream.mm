namespace {

#include "shared/launch.h"
#include "shared/operands.h"
#include "shared/pooling.h"

void check_pooled(const Tensor& input, IntArrayRef output_size, const char* name) {
  TORCH_CHECK(output_size.size() == 3, name, ": internal error: output_size.size() must be 3");
  for (int64_t i = 1; i < input.dim(); ++i) {
    TORCH_CHECK(
        input.size(i) > 0, name,
        "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", input.sizes(),
        " with dimension ", i, " being empty");
  }
  TORCH_CHECK(input.dim() == 4 || input.dim() == 5, name, "(): Expected 4D or 5D tensor, but got ", input.sizes());
}

void check_dtype(const Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "adaptive_avg_pool3d is not implemented for ", input.scalar_type(), " on MPS");
}

void check_output(const Tensor& out, const Tensor& self, const char* name) {
  TORCH_CHECK(
      out.scalar_type() == self.scalar_type(), name, ": Expected out tensor to have dtype ", self.scalar_type(),
      ", but got ", out.scalar_type(), " instead");
}

// Of a gradient for more planes than the input has, the CPU leaves the others alone.
Tensor of_the_planes(const Tensor& grad_output, const Tensor& self) {
  Tensor given = grad_output;
  for (const auto d : c10::irange(self.dim() - 3)) {
    TORCH_CHECK(
        given.size(d) >= self.size(d), "adaptive_avg_pool3d_backward: expected `gradOutput_` of ",
        self.sizes().slice(0, self.dim() - 3), " planes or more but got sizes ", grad_output.sizes());
    given = given.narrow(d, 0, self.size(d));
  }
  return given;
}

} // namespace

Tensor _adaptive_avg_pool3d_mps(const Tensor& self, IntArrayRef output_size) {
  check_pooled(self, output_size, "adaptive_avg_pool3d");
  DimVector shape(self.sizes().slice(0, self.dim() - 3));
  shape.append(output_size.begin(), output_size.end());
  auto out = at::empty(shape, self.options(), MemoryFormat::Contiguous);
  if (out.numel() == 0) {
    return out;
  }
  check_dtype(self);
  const auto inputs = self.sizes().slice(self.dim() - 3);
  const auto geometry = pooling_geometry(self, inputs, output_size);
  const auto suffix = scalarToMetalTypeString(self);
  if (has_large_windows(inputs, output_size)) {
    launch_rows("adaptive_avg_pool3d_large_" + suffix, out.numel(), large_window, out, self, geometry);
  } else {
    launch_elements("adaptive_avg_pool3d_" + suffix, out.numel(), out, self, geometry);
  }
  return out;
}

Tensor& adaptive_avg_pool3d_out_mps(const Tensor& self, IntArrayRef output_size, Tensor& out) {
  check_output(out, self, "adaptive_avg_pool3d");
  const auto result = _adaptive_avg_pool3d_mps(self, output_size);
  resize_output(out, result.sizes());
  assert_no_internal_overlap(out);
  return out.copy_(result);
}

Tensor _adaptive_avg_pool3d_backward_mps(const Tensor& grad_output, const Tensor& self) {
  TORCH_CHECK(
      grad_output.dim() >= 3, "adaptive_avg_pool3d_backward(): Expected 4D or 5D tensor, but got ",
      grad_output.sizes());
  const auto outputs = grad_output.sizes().slice(grad_output.dim() - 3);
  check_pooled(grad_output, outputs, "adaptive_avg_pool3d_backward");
  check_dtype(self);
  TORCH_CHECK(
      grad_output.dim() == self.dim(), "adaptive_avg_pool3d_backward: Expected dimensions ", self.dim(),
      " for `gradOutput_` but got dimensions ", grad_output.dim());
  require_scalar_type(grad_output, self.scalar_type());
  const auto given = of_the_planes(grad_output, self);
  auto gradient = at::empty(self.sizes(), self.options(), MemoryFormat::Contiguous);
  if (gradient.numel() != 0) {
    const auto geometry = pooling_geometry(given, self.sizes().slice(self.dim() - 3), outputs);
    const auto name = "adaptive_avg_pool3d_backward_" + scalarToMetalTypeString(self);
    launch_elements(name, gradient.numel(), gradient, given, geometry);
  }
  return gradient;
}

Tensor& adaptive_avg_pool3d_backward_grad_input_mps(const Tensor& grad_output, const Tensor& self, Tensor& grad_input) {
  check_output(grad_input, self, "adaptive_avg_pool3d_backward");
  const auto result = _adaptive_avg_pool3d_backward_mps(grad_output, self);
  resize_output(grad_input, result.sizes());
  assert_no_internal_overlap(grad_input);
  return grad_input.copy_(result);
}
