#include <ATen/native/BatchLinearAlgebra.h>

namespace {

#include "shared/launch.h"

std::string suffix_of(const Tensor& matrix, bool hermitian, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      matrix.scalar_type() == kFloat || matrix.scalar_type() == kComplexFloat, name, " is not implemented for ",
      matrix.scalar_type(), " on MPS");
  return scalarToMetalTypeString(matrix) + (hermitian && matrix.is_complex() ? "_hermitian" : "");
}

// LD holds the lower triangle of the matrices when it comes, the factors when it goes.
void ldl_factor_kernel(const Tensor& LD, const Tensor& pivots, const Tensor& info, bool upper, bool hermitian) {
  TORCH_CHECK(!upper, "linalg.ldl_factor_ex: only lower triangles are implemented on MPS");
  const auto suffix = suffix_of(LD, hermitian, "linalg.ldl_factor_ex");
  const auto n = LD.size(-1);
  const auto factors = LD.mT().contiguous(); // (..., column, row): column-major
  const auto steps = at::empty(pivots.sizes(), pivots.options());
  const auto codes = at::empty(info.sizes(), info.options());
  launch_rows("ldl_factor_" + suffix, codes.numel(), row_group(n), factors, steps, codes, static_cast<int>(n));
  LD.copy_(factors.mT());
  pivots.copy_(steps);
  info.copy_(codes);
}

// The result holds the right-hand sides when it comes, the solutions when it goes.
void ldl_solve_kernel(const Tensor& LD, const Tensor& pivots, const Tensor& result, bool upper, bool hermitian) {
  TORCH_CHECK(!upper, "linalg.ldl_solve: only lower triangles are implemented on MPS");
  const auto suffix = suffix_of(LD, hermitian, "linalg.ldl_solve");
  const auto n = result.size(-2), columns = result.size(-1);
  if (result.numel() == 0) {
    return;
  }
  const auto batch = result.sizes().slice(0, result.dim() - 2);
  DimVector of_matrices(batch), of_pivots(batch);
  of_matrices.append({n, n});
  of_pivots.push_back(n);
  const auto sides = result.mT().clone(MemoryFormat::Contiguous);
  launch_rows(
      "ldl_solve_" + suffix, sides.numel() / n, 32, sides, LD.mT().expand(of_matrices).contiguous(),
      pivots.to(kInt).expand(of_pivots).contiguous(), static_cast<int>(n), static_cast<int>(columns));
  result.copy_(sides.mT());
}

} // namespace

REGISTER_DISPATCH(ldl_factor_stub, &ldl_factor_kernel)
REGISTER_DISPATCH(ldl_solve_stub, &ldl_solve_kernel)
