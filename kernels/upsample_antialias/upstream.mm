namespace {

#include "shared/antialias.h"
#include "shared/grid.h"
#include "shared/launch.h"

constexpr int64_t height = 2, width = 3; // the axes

// A filter of the Metal source, and how far it reaches.
struct Filter {
  const char* name;
  double support;
};

// Undo the resampling of one axis: from the gradients along it to those of the larger or smaller `out`.
void gather(const Tensor& out, const Tensor& source, int64_t axis, const Filter& filter, double scale) {
  const auto outputs = source.size(axis), inputs = out.size(axis);
  const auto reach = filter.support * std::max(scale, 1.0);
  const auto room = 2 * static_cast<int64_t>(std::ceil(reach)) + 1;
  const auto windows = at::empty({outputs, 2}, out.options().dtype(kInt));
  const auto weights = at::empty({outputs, room}, out.options().dtype(kFloat));
  const std::array<int64_t, 3> sizes = {outputs, inputs, room};
  const auto step = static_cast<float>(scale);
  launch_elements(std::string("weights_") + filter.name, outputs, windows, weights, sizes, step);
  std::vector<int64_t> geometry(out.sizes().begin(), out.sizes().end());
  geometry.insert(geometry.end(), out.strides().begin(), out.strides().end());
  geometry.insert(geometry.end(), source.strides().begin(), source.strides().end());
  geometry.insert(geometry.end(), {axis, outputs, room});
  launch_grid(
      "backward_" + scalarToMetalTypeString(source) + "_" + scalarToMetalTypeString(out),
      MTLSizeMake(out.size(width), out.size(height), out.size(0) * out.size(1)), MTLSizeMake(32, 8, 1), out, source,
      windows, weights, geometry, step, static_cast<float>(reach));
}

// The gradient of the input, summed in float32, along the width and then along the height.
void backward(
    const Tensor& grad_output,
    IntArrayRef output_size,
    IntArrayRef input_size,
    bool align_corners,
    std::optional<double> scales_h,
    std::optional<double> scales_w,
    const Tensor& grad_input,
    const Filter& filter) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(grad_output), "the backward of antialiased resampling is not implemented for ",
      grad_output.scalar_type(), " on MPS");
  if (grad_input.numel() == 0) {
    return;
  }
  const auto middle = at::empty(
      {grad_output.size(0), grad_output.size(1), grad_output.size(height), input_size[width]},
      grad_output.options().dtype(kFloat));
  gather(middle, grad_output, width, filter, scale_of(input_size[width], output_size[1], align_corners, scales_w));
  gather(grad_input, middle, height, filter, scale_of(input_size[height], output_size[0], align_corners, scales_h));
}

} // namespace

TORCH_IMPL_FUNC(_upsample_bilinear2d_aa_backward_grad_input_mps)
(const Tensor& grad_output,
 IntArrayRef output_size,
 IntArrayRef input_size,
 bool align_corners,
 std::optional<double> scales_h,
 std::optional<double> scales_w,
 const Tensor& grad_input) {
  backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w, grad_input, {"linear", 1.0});
}

TORCH_IMPL_FUNC(_upsample_bicubic2d_aa_backward_grad_input_mps)
(const Tensor& grad_output,
 IntArrayRef output_size,
 IntArrayRef input_size,
 bool align_corners,
 std::optional<double> scales_h,
 std::optional<double> scales_w,
 const Tensor& grad_input) {
  backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w, grad_input, {"cubic", 2.0});
}

TORCH_IMPL_FUNC(_upsample_lanczos2d_aa_backward_grad_input_mps)
(const Tensor& grad_output,
 IntArrayRef output_size,
 IntArrayRef input_size,
 bool align_corners,
 std::optional<double> scales_h,
 std::optional<double> scales_w,
 const Tensor& grad_input) {
  backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w, grad_input, {"lanczos", 3.0});
}
