namespace {

#include "shared/grid.h"
#include "shared/lapack.h"
#include "shared/launch.h"

// A group of threads computes a matrix. Larger ones could come near the time after which macOS ends a launch.
constexpr int64_t most_rows = 120;
constexpr int not_finite = -1; // as in the Metal source
// Imaginary parts of a real matrix's eigenvalues up to so many units of its norm, a row, are rounding.
constexpr double units_of_rounding = 2.0;

void check_matrices(const Tensor& self, const char* name) {
  TORCH_CHECK(self.dim() >= 2, name, ": The input tensor A must have at least 2 dimensions.");
  TORCH_CHECK(
      self.size(-2) == self.size(-1), name, ": A must be batches of square matrices, but they are ", self.size(-2),
      " by ", self.size(-1), " matrices");
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(), name,
      ": Expected a floating point or complex tensor as input. Got ", self.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.scalar_type() == kFloat || self.scalar_type() == kComplexFloat, name, " is not implemented for ",
      self.scalar_type(), " on MPS");
}

void check_output(const Tensor& out, const char* name) {
  TORCH_CHECK(
      out.scalar_type() == kComplexFloat, "torch.linalg.eig: Expected ", name,
      " to be safely castable from ComplexFloat dtype, but got ", name, " with dtype ", out.scalar_type());
  assert_no_internal_overlap(out);
}

IntArrayRef of_values(const Tensor& self) { return self.sizes().slice(0, self.dim() - 1); }

Tensor over_matrices(const Tensor& numbers) { return numbers.view({-1, 1, 1}); }

// A power of two for each matrix, near its largest element, so that no square overflows or vanishes.
Tensor scale_of(const Tensor& self) {
  const auto peak = self.abs().amax({-2, -1}).reshape({-1});
  return peak.log2().floor().nan_to_num(0.0, 0.0, 0.0).clamp(-125, 126).exp2();
}

// How large the rounding of each matrix's eigenvalues is, over its scale.
Tensor tolerances_of(const Tensor& self) {
  const auto n = self.size(-1);
  const auto scaled = self.abs().reshape({-1, n, n}).div(over_matrices(scale_of(self)));
  const auto norm = scaled.square().sum(IntArrayRef{-2, -1}).sqrt();
  return norm.mul(units_of_rounding * static_cast<double>(n) * std::numeric_limits<float>::epsilon());
}

// Upper triangular matrices, over their scale, and the unitary ones that lead to them; else the diagonals alone. None for
// matrices that are too large for one launch, or do not converge.
std::optional<std::pair<Tensor, Tensor>> schur(const Tensor& self, bool with_vectors) {
  const auto n = self.size(-1);
  if (n > most_rows) {
    TORCH_WARN_ONCE("linalg.eig: a matrix has more than ", most_rows, " rows; this call runs on the CPU");
    return std::nullopt;
  }
  const auto form = self.reshape({-1, n, n}).div(over_matrices(scale_of(self))).to(kComplexFloat).contiguous();
  const auto batch = form.size(0);
  const auto vectors = with_vectors ? at::zeros({batch, n, n}, form.options()) : at::zeros({1}, form.options());
  if (with_vectors) {
    vectors.diagonal(0, -2, -1).fill_(1.0);
  }
  const auto reflectors = at::empty({batch, n}, form.options());
  const auto rotations = at::empty({batch, n, 2}, form.options());
  const auto infos = at::empty({batch}, form.options().dtype(kInt));
  launch_rows(
      "schur", batch, row_group(2 * n), form, vectors, reflectors, rotations, infos,
      std::array<int, 2>{static_cast<int>(n), with_vectors});
  const auto on_host = infos.cpu();
  TORCH_CHECK(
      on_host.min().item<int>() != not_finite, "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  if (!all_converged(on_host, "linalg.eig", self.dim() == 2)) {
    return std::nullopt;
  }
  return std::make_pair(form, vectors);
}

// The eigenvalues over their scale, and of each the column of its vector, or -1 minus that of its conjugate.
std::pair<Tensor, Tensor> values_of(const Tensor& self, const Tensor& form) {
  const auto batch = form.size(0), n = form.size(-1);
  const auto values = form.diagonal(0, -2, -1).clone(MemoryFormat::Contiguous);
  const auto ordered = at::empty_like(values);
  const auto columns = at::empty({batch, n}, form.options().dtype(kInt));
  const auto mates = at::empty({batch, 2 * n}, form.options().dtype(kInt));
  launch_rows(
      "order_values", batch, row_group(n), ordered, columns, values, mates, tolerances_of(self),
      std::array<int, 2>{static_cast<int>(n), !self.is_complex()});
  return {ordered, columns};
}

Tensor unscaled(const Tensor& self, const Tensor& values) {
  return values.mul(scale_of(self).unsqueeze(-1)).view(of_values(self));
}

} // namespace

// Eigenvalues, those of a real matrix in pairs, and vectors of length one in columns.
std::tuple<Tensor, Tensor> linalg_eig_mps(const Tensor& self) {
  check_matrices(self, "linalg.eig");
  const auto of_results = self.options().dtype(kComplexFloat);
  if (self.numel() == 0) {
    return {at::empty(of_values(self), of_results), at::empty(self.sizes(), of_results)};
  }
  const auto decomposed = schur(self, /*with_vectors=*/true);
  if (!decomposed) {
    const auto [values, vectors] = at::linalg_eig(self.cpu());
    return {values.to(self.device()), vectors.to(self.device())};
  }
  const auto& [form, vectors] = *decomposed;
  const auto batch = form.size(0), n = form.size(-1);
  const auto [values, columns] = values_of(self, form);
  const auto triangular = at::empty_like(form);
  const auto group = row_group(n);
  const auto threads = MTLSizeMake((n + group - 1) / group * group, batch, 1);
  launch_grid(
      "triangular_vectors", threads, MTLSizeMake(group, 1, 1), triangular, form, values, columns, static_cast<int>(n));
  const auto found = at::bmm(vectors, triangular), result = at::empty_like(form);
  launch_grid(
      "unit_vectors", threads, MTLSizeMake(group, 1, 1), result, found, values, columns,
      std::array<int, 2>{static_cast<int>(n), !self.is_complex()});
  return {unscaled(self, values), result.view(self.sizes())};
}

std::tuple<Tensor&, Tensor&> linalg_eig_out_mps(const Tensor& self, Tensor& eigenvalues, Tensor& eigenvectors) {
  check_matrices(self, "linalg.eig");
  check_output(eigenvalues, "eigenvalues");
  check_output(eigenvectors, "eigenvectors");
  const auto [values, vectors] = linalg_eig_mps(self);
  resize_output(eigenvalues, values.sizes());
  resize_output(eigenvectors, vectors.sizes());
  eigenvalues.copy_(values);
  eigenvectors.copy_(vectors);
  return {eigenvalues, eigenvectors};
}

Tensor _linalg_eigvals_mps(const Tensor& self) {
  check_matrices(self, "linalg.eigvals");
  if (self.numel() == 0) {
    return at::empty(of_values(self), self.options().dtype(kComplexFloat));
  }
  const auto decomposed = schur(self, /*with_vectors=*/false);
  return decomposed ? unscaled(self, values_of(self, decomposed->first).first)
                    : at::linalg_eigvals(self.cpu()).to(self.device());
}

Tensor& linalg_eigvals_out_mps(const Tensor& self, Tensor& out) {
  check_matrices(self, "linalg.eigvals");
  check_output(out, "eigenvalues");
  const auto values = _linalg_eigvals_mps(self);
  resize_output(out, values.sizes());
  return out.copy_(values);
}
