namespace {

#include "shared/launch.h"

void check(const Tensor& self, const Tensor& noise) {
  TORCH_CHECK(
      self.sizes() == noise.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
      " noise.shape = ", noise.sizes());
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "rrelu_with_noise is not implemented for ", self.scalar_type(), " on MPS");
  TORCH_CHECK(
      noise.scalar_type() == self.scalar_type(), "rrelu_with_noise: Expected noise tensor to have dtype ",
      self.scalar_type(), ", but got ", noise.scalar_type(), " instead");
}

} // namespace

Tensor& rrelu_with_noise_out_mps(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    std::optional<Generator> generator,
    Tensor& out) {
  check(self, noise);
  TORCH_CHECK(
      out.scalar_type() == self.scalar_type(), "rrelu_with_noise: Expected out tensor to have dtype ",
      self.scalar_type(), ", but got ", out.scalar_type(), " instead");
  if (!training) {
    return at::leaky_relu_out(out, self, (lower.toDouble() + upper.toDouble()) / 2);
  }
  resize_output(out, self.sizes());
  assert_no_internal_overlap(out);
  assert_no_internal_overlap(noise);
  const auto elements = self.numel();
  if (elements == 0) {
    return out;
  }
  const auto drawn =
      at::empty_like(self, MemoryFormat::Preserve).uniform_(lower.toDouble(), upper.toDouble(), std::move(generator));
  // An input that overlaps the output in another way than being it is read before it is written.
  const auto input = get_overlap_status(out, self) == MemOverlapStatus::No || out.is_same(self) ? self : self.clone();
  const auto suffix = scalarToMetalTypeString(self);
  const std::array<float, 1> parameters = {0.0f};
  if (is_dense_and_aligned({out, noise, input, drawn})) {
    const auto lanes = 16 / out.element_size();
    const auto threads = (elements + lanes - 1) / lanes;
    launch_elements("rrelu_with_noise_dense_" + suffix, threads, out, noise, input, drawn, parameters, elements);
  } else {
    const auto layout = packed_layout({out, noise, input, drawn});
    launch_elements("rrelu_with_noise_strided64_" + suffix, elements, out, noise, input, drawn, parameters, layout);
  }
  return out;
}

Tensor rrelu_with_noise_mps(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    std::optional<Generator> generator) {
  auto out = at::empty_like(self);
  return rrelu_with_noise_out_mps(self, noise, lower, upper, training, std::move(generator), out);
}

Tensor& rrelu_with_noise__mps(
    Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    std::optional<Generator> generator) {
  return rrelu_with_noise_out_mps(self, noise, lower, upper, training, std::move(generator), self);
}
