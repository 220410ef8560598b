#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>

namespace {

#include "shared/launch.h"

int64_t wrapped(int64_t dim, const Tensor& x) {
  TORCH_CHECK_INDEX(x.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return maybe_wrap_dim(dim, x.dim());
}

// The linear part and the gate.
std::pair<Tensor, Tensor> halves(const Tensor& x, int64_t dim, int64_t half) {
  return {x.narrow(dim, 0, half), x.narrow(dim, half, half)};
}

DimVector broadcast(const Tensor& first, at::TensorList others) {
  DimVector shape(first.sizes());
  for (const auto& other : others) {
    shape = infer_size_dimvector(shape, other.sizes());
  }
  return shape;
}

} // namespace

Tensor glu_jvp_mps(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  dim = wrapped(dim, x);
  const auto half = glu.size(dim);
  const auto b = x.narrow(dim, half, half);
  const auto [da, db] = halves(dx, dim, half);
  for (const auto& other : {x, dx}) {
    TORCH_CHECK(
        other.scalar_type() == glu.scalar_type(), "Found dtype ", other.scalar_type(), " but expected ",
        glu.scalar_type());
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(glu), "glu_jvp is not implemented for ", glu.scalar_type(), " on MPS");
  const auto shape = broadcast(glu, {b, da});
  const auto out = glu.sizes() == shape ? at::empty_like(glu) : at::empty(shape, glu.options());
  if (out.numel() != 0) {
    const std::vector<Tensor> operands = {out, glu.expand(shape), b.expand(shape), da.expand(shape), db.expand(shape)};
    const auto name = "glu_jvp64_" + scalarToMetalTypeString(out);
    const auto layout = packed_layout(operands);
    launch_elements(name, out.numel(), out, operands[1], operands[2], operands[3], operands[4], layout);
  }
  return out;
}

Tensor glu_backward_jvp_mps(
    const Tensor& grad_x,
    const Tensor& grad_glu,
    const Tensor& x,
    const Tensor& dgrad_glu,
    const Tensor& dx,
    int64_t dim) {
  dim = wrapped(dim, x);
  const auto half = grad_glu.size(dim);
  const auto [a, b] = halves(x, dim, half);
  const auto [da, db] = halves(dx, dim, half);
  const auto linear = halves(grad_x, dim, half).first;
  auto dtype = grad_x.scalar_type();
  for (const auto& other : {x, dgrad_glu, dx}) {
    dtype = promoteTypes(dtype, other.scalar_type());
  }
  if (c10::isIntegralType(dtype, /*includeBool=*/true)) {
    dtype = get_default_dtype_as_scalartype();
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(dtype) || dtype == kComplexFloat, "glu_backward_jvp is not implemented for ", dtype,
      " on MPS");
  const auto shape = broadcast(a, {linear, dgrad_glu, da});
  auto whole = shape;
  whole[dim] *= 2;
  const auto out = at::empty(whole, x.options().dtype(dtype));
  if (out.numel() != 0) {
    std::vector<Tensor> operands = {out.narrow(dim, 0, shape[dim]), out.narrow(dim, shape[dim], shape[dim])};
    for (const auto& part : {linear, a, b, dgrad_glu, da, db}) {
      operands.push_back(part.to(dtype).expand(shape));
    }
    launch_elements(
        "glu_backward_jvp64_" + scalarToMetalTypeString(out), operands[0].numel(), operands[0], operands[1],
        operands[2], operands[3], operands[4], operands[5], operands[6], operands[7], packed_layout(operands));
  }
  return out;
}
