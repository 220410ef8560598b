namespace {

#include "shared/grid.h"
#include "shared/launch.h"

// The polynomial of degree 16 is off by less than half a unit of float for norms up to 2: 2^17 / 17! = 4e-10.
constexpr double largest_norm = 2.0;
constexpr int degree = 16;
constexpr int most_squares = 128; // a norm is below 2^128: it is never halved more often
// What `square_small` holds in threadgroup memory, its group, and the tile and group of `square_once`.
constexpr int64_t small = 32, small_group = 256, tile = 32, side = 16;

// Adds to `out`; all are contiguous.
void combine(const Tensor& out, const Tensor& x, const Tensor& coefficients) {
  const auto rows = coefficients.size(0);
  const std::array<int64_t, 3> sizes = {rows, coefficients.size(1), out.numel() / rows};
  launch_elements("linear_combination_" + scalarToMetalTypeString(x), out.numel(), out, x, coefficients, sizes);
}

// Four cubic polynomials, the last with the highest power too: a row of each.
Tensor coefficients_of(const Tensor& x) {
  std::vector<double> terms;
  double factorial = 1;
  for (const auto k : c10::irange(degree + 1)) {
    factorial *= std::max<int64_t>(k, 1);
    terms.push_back(1 / factorial);
  }
  std::vector<double> rows;
  for (const auto i : c10::irange(4)) {
    rows.insert(rows.end(), terms.begin() + 4 * i, terms.begin() + 4 * i + 4);
    rows.push_back(i == 3 ? terms[degree] : 0.0);
  }
  return at::tensor(rows, at::dtype(kFloat)).view({4, 5}).to(x.device()).to(x.scalar_type());
}

// The Taylor polynomial with six products (M. S. Paterson and L. J. Stockmeyer, SIAM J. Computing 2, 1973).
Tensor polynomial(const Tensor& x) {
  const auto n = x.size(-1);
  const auto powers = at::empty({5, x.size(0), n, n}, x.options());
  auto square = powers[2], cube = powers[3], fourth = powers[4];
  powers[0].copy_(at::eye(n, x.options()));
  powers[1].copy_(x);
  at::bmm_out(square, x, x);
  at::bmm_out(cube, square, x);
  at::bmm_out(fourth, square, square);
  const auto parts = at::zeros({4, x.size(0), n, n}, x.options());
  combine(parts, powers, coefficients_of(x));
  auto total = parts[3]; // Horner's scheme in the fourth power
  for (int64_t part = 2; part >= 0; --part) {
    total = at::baddbmm(parts[part], total, fourth);
  }
  return total;
}

// Each matrix to the power 2^squares.
Tensor squared(const Tensor& x, const Tensor& squares) {
  const auto count = x.size(0), n = x.size(-1);
  const auto suffix = scalarToMetalTypeString(x);
  if (n <= small) {
    launch_rows("square_small_" + suffix, count, small_group, x, squares, static_cast<int>(n));
    return x;
  }
  const std::array<Tensor, 2> pair = {x, x.clone()};
  const auto tiles = (n + tile - 1) / tile * side;
  for (const auto done : c10::irange(squares.max().item<int>())) { // each is a launch
    launch_grid(
        "square_once_" + suffix, MTLSizeMake(tiles, tiles, count), MTLSizeMake(side, side, 1), pair[(done + 1) % 2],
        pair[done % 2], squares, std::array<int, 2>{static_cast<int>(n), done});
  }
  return at::where(squares.remainder(2).eq(0).view({count, 1, 1}), pair[0], pair[1]);
}

void check_matrices(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.");
  TORCH_CHECK(
      self.size(-2) == self.size(-1), "linalg.matrix_exp: A must be batches of square matrices, but they are ",
      self.size(-2), " by ", self.size(-1), " matrices");
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(),
      "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got ", self.scalar_type());
}

void check_combination(const Tensor& input, const Tensor& coefficients) {
  TORCH_CHECK(input.dim() > 0 && input.numel() > 0, "Empty tensor not supported");
  TORCH_CHECK_INDEX(coefficients.dim() >= 2, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  TORCH_CHECK(
      coefficients.size(1) <= input.size(0) && coefficients.scalar_type() == input.scalar_type() &&
          coefficients.numel() != 0,
      "_compute_linear_combination: expected a coefficient for each of the inputs, of their dtype");
  TORCH_CHECK_NOT_IMPLEMENTED(
      input.scalar_type() != kDouble && input.scalar_type() != kComplexDouble,
      "_compute_linear_combination is not implemented for ", input.scalar_type(), " on MPS");
}

DimVector combined_shape(const Tensor& input, const Tensor& coefficients) {
  DimVector shape(input.sizes());
  shape[0] = coefficients.size(0);
  return shape;
}

} // namespace

// The norms stay on the device: each matrix of the batch is squared as often as it needs, and nothing is read back.
Tensor linalg_matrix_exp_mps(const Tensor& self) {
  check_matrices(self);
  if (self.scalar_type() == kHalf || self.scalar_type() == kBFloat16) {
    return linalg_matrix_exp_mps(self.to(kFloat)).to(self.scalar_type());
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.scalar_type() == kFloat || self.scalar_type() == kComplexFloat, "linalg_matrix_exp is not implemented for ",
      self.scalar_type(), " on MPS");
  auto out = at::empty(self.sizes(), self.options());
  const auto n = self.size(-1);
  if (out.numel() == 0) {
    return out;
  }
  if (n == 1) {
    return out.copy_(self.exp());
  }
  const auto x = self.reshape({-1, n, n}).contiguous();
  const auto norm = x.abs().sum(-2).amax(-1);
  // A norm that is not finite makes a result that is not, with or without squares.
  const auto squares = norm.div(largest_norm).log2().ceil().nan_to_num(0.0, 0.0, 0.0).clamp(0, most_squares);
  const auto halved = squares.div(2).floor(); // 2^-128 is not normal
  const auto factor = [](const Tensor& exponent) { return exponent.exp2().view({-1, 1, 1}); };
  const auto scaled = x.mul(factor(halved.neg())).mul(factor(halved.sub(squares)));
  return out.copy_(squared(polynomial(scaled), squares.to(kInt)).view(self.sizes()));
}

Tensor& _compute_linear_combination_out_mps(const Tensor& input, const Tensor& coefficients, Tensor& out) {
  check_combination(input, coefficients);
  TORCH_CHECK(
      out.scalar_type() == input.scalar_type(), "_compute_linear_combination: Expected out tensor to have dtype ",
      input.scalar_type(), ", but got ", out.scalar_type(), " instead");
  assert_no_internal_overlap(out);
  const auto shape = combined_shape(input, coefficients);
  for (const auto d : c10::irange(std::min<int64_t>(out.dim(), shape.size()))) {
    TORCH_CHECK(
        out.size(d) == shape[d], "The size of tensor a (", out.size(d), ") must match the size of tensor b (", shape[d],
        ") at non-singleton dimension ", d);
  }
  TORCH_CHECK(
      out.dim() == static_cast<int64_t>(shape.size()), "expected an output of shape ", IntArrayRef(shape), ", but got ",
      out.sizes());
  const auto sums = out.is_contiguous() ? out : out.contiguous();
  combine(sums, input.narrow(0, 0, coefficients.size(1)).contiguous(), coefficients.contiguous());
  return sums.is_same(out) ? out : out.copy_(sums);
}

Tensor _compute_linear_combination_mps(const Tensor& input, const Tensor& coefficients) {
  check_combination(input, coefficients);
  auto out = at::zeros(combined_shape(input, coefficients), input.options());
  return _compute_linear_combination_out_mps(input, coefficients, out);
}
