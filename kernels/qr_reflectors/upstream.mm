namespace {

#include "shared/lapack.h"
#include "shared/launch.h"
const std::string reflectors_of = "qr_";
#include "shared/reflectors.h"

void check_castable(const Tensor& self, const Tensor& out, const char* name) {
  TORCH_CHECK(
      canCast(self.scalar_type(), out.scalar_type()), "torch.geqrf: Expected ", name, " to be safely castable from ",
      self.scalar_type(), " dtype, but got ", name, " with dtype ", out.scalar_type());
}

// In Fortran's order where an output has no memory yet, as the CPU leaves it.
void give(const Tensor& out, const Tensor& result) {
  if (out.sizes() != result.sizes() && out.numel() == 0) {
    out.resize_(result.sizes()).as_strided_(result.sizes(), result.strides());
  }
  resize_output(out, result.sizes());
  assert_no_internal_overlap(out);
  out.copy_(result);
}

void check_product(const Tensor& self, const Tensor& tau, const Tensor& other, bool left) {
  const auto dims = self.dim();
  TORCH_CHECK(dims >= 2, "torch.ormqr: input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
  const auto side = left ? -2 : -1;
  TORCH_CHECK(
      other.size(side) >= tau.size(-1), "torch.ormqr: other.shape[", side,
      "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(
      other.size(side) == self.size(-2), "torch.ormqr: other.shape[", side, "] must be equal to input.shape[-2]");
  TORCH_CHECK(
      tau.size(-1) <= self.size(-1), "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]");
  TORCH_CHECK(
      dims - tau.dim() == 1,
      "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
      " and input.ndim is equal to ", dims);
  TORCH_CHECK(
      dims == other.dim(), "torch.ormqr: Expected other to have the same number of dimensions as input, but got ",
      "other.ndim equal to ", other.dim(), " and input.ndim is equal to ", dims);
  const auto batch = self.sizes().slice(0, dims - 2);
  TORCH_CHECK(
      tau.sizes().slice(0, dims - 2) == batch, "torch.ormqr: Expected batch dimensions of tau to be equal to ",
      "input.shape[:-2], but got ", tau.sizes().slice(0, dims - 2));
  TORCH_CHECK(
      other.sizes().slice(0, dims - 2) == batch, "torch.ormqr: Expected batch dimensions of other to be equal to ",
      "input.shape[:-2], but got ", other.sizes().slice(0, dims - 2));
  for (const auto& [name, x] : {std::pair{"tau", tau}, std::pair{"other", other}}) {
    TORCH_CHECK(
        x.scalar_type() == self.scalar_type(), "torch.ormqr: Expected input and ", name,
        " to have the same dtype, but input has dtype", self.scalar_type(), " and ", name, " has dtype ",
        x.scalar_type());
  }
  TORCH_CHECK(
      tau.size(-1) == std::min(other.size(side), self.size(-1)), "torch.ormqr: tau.shape[-1] must be equal to ",
      "min(other.shape[", side, "], input.shape[-1])");
}

} // namespace

std::tuple<Tensor, Tensor> geqrf_mps(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  check_lapack_dtype(self, "geqrf_cpu");
  const auto columns = self.mT().clone(MemoryFormat::Contiguous);
  DimVector shape(self.sizes().slice(0, self.dim() - 2));
  shape.push_back(std::min(self.size(-2), self.size(-1)));
  auto taus = at::empty(shape, self.options());
  factorize(columns, taus);
  return {columns.mT(), taus};
}

std::tuple<Tensor&, Tensor&> geqrf_a_mps(const Tensor& self, Tensor& a, Tensor& tau) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  check_castable(self, a, "a");
  check_castable(self, tau, "tau");
  const auto [factors, taus] = geqrf_mps(self);
  give(a, factors);
  give(tau, taus);
  return {a, tau};
}

Tensor& ormqr_out_mps(
    const Tensor& self, const Tensor& tau, const Tensor& other, bool left, bool transpose, Tensor& out) {
  check_product(self, tau, other, left);
  TORCH_CHECK(
      out.scalar_type() == self.scalar_type(),
      "torch.ormqr: Expected input and result to have the same dtype, but input has dtype", self.scalar_type(),
      " and result has dtype ", out.scalar_type());
  check_lapack_dtype(self, "ormqr_cpu");
  resize_output(out, other.sizes());
  assert_no_internal_overlap(out);
  if (out.numel() == 0) {
    return out;
  }
  // Q from the right is its adjoint from the left of the adjoint.
  const auto columns = (left ? other.mT() : other.conj()).clone(MemoryFormat::Contiguous).resolve_conj();
  apply_reflectors(columns, self.mT().contiguous(), tau.contiguous(), left ? transpose : !transpose);
  return out.copy_(left ? columns.mT() : columns.conj());
}

Tensor ormqr_mps(const Tensor& self, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  check_product(self, tau, other, left);
  check_lapack_dtype(self, "ormqr_cpu");
  DimVector shape(other.mT().sizes());
  auto out = at::empty(shape, self.options()).mT();
  return ormqr_out_mps(self, tau, other, left, transpose, out);
}
