// LAPACK's dtypes on this device; the CPU's words, which name its kernel.
inline void check_lapack_dtype(const Tensor& x, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      x.scalar_type() == kFloat || x.scalar_type() == kComplexFloat, "\"", kernel, "\" not implemented for '",
      x.scalar_type(), "'");
}

// Whether all matrices of a call converged. Raises, as the CPU does, for a matrix with a negative info.
inline bool all_converged(const Tensor& infos, const char* name, bool is_matrix) {
  const auto on_host = infos.cpu();
  if (on_host.numel() == 0 || on_host.max().item<int>() <= 0) {
    at::_linalg_check_errors(on_host, name, is_matrix);
    return true;
  }
  TORCH_WARN_ONCE(name, ": the iteration on the GPU did not converge; this call runs on the CPU");
  return false;
}
