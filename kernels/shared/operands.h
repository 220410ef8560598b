// A kernel takes the bytes of another dtype for its own.
inline void require_scalar_type(const Tensor& x, ScalarType dtype) {
  TORCH_CHECK(x.scalar_type() == dtype, "expected scalar type ", dtype, " but found ", x.scalar_type());
}

// A kernel reads what lies behind a tensor that is too short.
inline void require_sizes(const Tensor& x, IntArrayRef sizes, const char* name) {
  TORCH_CHECK(x.sizes() == sizes, "expected sizes ", sizes, " for `", name, "` but got sizes ", x.sizes());
}
