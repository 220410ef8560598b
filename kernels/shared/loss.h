inline void require_dtype(const Tensor& x, ScalarType dtype, const char* name) {
  TORCH_CHECK(x.scalar_type() == dtype, name, ": Expected a tensor of dtype ", dtype, ", but got ", x.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(supportedFloatingType(dtype), name, " is not implemented for ", dtype, " on MPS");
}

// Writes float32 losses of all rows, their mean or their sum, cast to the output's dtype. Without reduction there is a
// result a row where the input has rows.
inline Tensor& reduce_losses(const Tensor& losses, int64_t reduction, bool keeps_rows, Tensor& out) {
  if (reduction != Reduction::None && out.scalar_type() == kFloat) { // at once: to copy it would be a launch more
    resize_output(out, IntArrayRef{});
    return reduction == Reduction::Mean ? at::mean_out(out, losses, IntArrayRef{0})
                                        : at::sum_out(out, losses, IntArrayRef{0});
  }
  const auto result = reduction == Reduction::Mean ? losses.mean()
      : reduction == Reduction::Sum                ? losses.sum()
      : keeps_rows                                 ? losses
                                                   : losses.reshape({});
  resize_output(out, result.sizes());
  return out.copy_(result);
}
