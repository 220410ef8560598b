// A gradient, and positions of maxima where there are some, of what the input gives when it is pooled to this size.
inline void check_pooled_gradient(
    const Tensor& grad_output, const Tensor& self, IntArrayRef output_size, const Tensor& indices, const char* name) {
  require_scalar_type(grad_output, self.scalar_type());
  TORCH_CHECK(grad_output.dim() == self.dim(), name, "(): expected grad_output of the dimensions of input");
  constexpr std::array<const char*, 3> sides = {"time", "height", "width"};
  const auto pooled = static_cast<int64_t>(output_size.size());
  for (const auto d : c10::irange(pooled)) {
    TORCH_CHECK(
        grad_output.size(d - pooled) == output_size[d], name, "(): gradOutput ", sides[3 - pooled + d], " unexpected");
  }
  const auto planes = self.dim() - pooled;
  TORCH_CHECK(
      grad_output.sizes().slice(0, planes) == self.sizes().slice(0, planes), name,
      "(): expected grad_output for every plane of input");
  if (indices.defined()) {
    require_scalar_type(indices, kLong);
    TORCH_CHECK(indices.sizes() == grad_output.sizes(), name, "(): expected indices of the sizes of grad_output");
  }
}
