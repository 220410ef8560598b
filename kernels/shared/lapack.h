// LAPACK's dtypes on this device; the CPU's words, which name its kernel.
inline void check_lapack_dtype(const Tensor& x, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      x.scalar_type() == kFloat || x.scalar_type() == kComplexFloat, "\"", kernel, "\" not implemented for '",
      x.scalar_type(), "'");
}
