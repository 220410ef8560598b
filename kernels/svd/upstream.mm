namespace {

#include "shared/lapack.h"
#include "shared/launch.h"

const std::string reflectors_of = "svd_";
#include "shared/reflectors.h"

// Launches are made before it is known how many sweeps it takes; those that follow the last one needed do nothing.
constexpr int most_sweeps = 14, sweeps_of_one_meeting = 8;
constexpr int64_t most_threads = 256;

// Columns that a group has room for: ROOM of the Metal source.
int room_of(const Tensor& matrices) { return matrices.is_complex() ? 32 : 48; }

ScalarType real_type(const Tensor& x) { return c10::toRealValueType(x.scalar_type()); }

DimVector with_last(IntArrayRef batch, std::initializer_list<int64_t> last) {
  DimVector shape(batch);
  shape.append(last.begin(), last.end());
  return shape;
}

// Left and right vectors as rows, singular values, and LAPACK's info of each matrix.
struct Factors {
  Tensor left;
  Tensor values;
  Tensor right;
  Tensor infos;
};

// Those of the conjugate transpose of R, which is in `factors`, (..., n, m), with its left vectors in the `order` of the
// columns before they were sorted.
Factors orthogonalize(const Tensor& factors, const Tensor& order, const Tensor& outlines, bool with_vectors) {
  const auto suffix = "_" + scalarToMetalTypeString(factors);
  const auto n = static_cast<int>(factors.size(-2)), m = static_cast<int>(factors.size(-1));
  const auto room = room_of(factors), vectors = static_cast<int>(with_vectors);
  const auto batch = matrices_of(factors);
  const auto needed = std::max(2, (n + room / 2 - 1) / (room / 2));
  const auto blocks = needed + needed % 2, pairs = blocks / 2;
  const auto sweeps = pairs == 1 ? sweeps_of_one_meeting : most_sweeps;
  const auto real = outlines.options(), whole = real.dtype(kInt);
  const auto columns = factors.sizes().slice(0, factors.dim() - 1);
  const auto work = at::empty(with_last(columns, {n}), factors.options());
  const auto like = with_vectors ? work : work.narrow(-1, 0, 0);
  const auto turns = at::empty_like(like, MemoryFormat::Contiguous);
  const Factors found = {
      at::empty_like(like, MemoryFormat::Contiguous), at::empty(columns, real),
      at::empty_like(like, MemoryFormat::Contiguous), at::empty(columns.slice(0, columns.size() - 1), whole)};
  const auto lengths = at::empty_like(found.values);
  const auto busy = at::zeros({batch, sweeps}, whole), moved = at::empty({batch, pairs}, whole);
  const auto together = at::empty({batch, pairs, room, room}, work.options());
  const auto strips = pairs * ((n + room - 1) / room) * (with_vectors ? 2 : 1);
  launch_rows("svd_begin" + suffix, batch * n, row_group(n), work, turns, factors, m, n, vectors);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int turn = 0; turn < blocks - 1; ++turn) {
      launch_rows(
          "svd_meet" + suffix, batch * pairs, most_threads, work, together, busy, moved, n, blocks, turn, sweep,
          sweeps);
      launch_rows(
          "svd_apply" + suffix, batch * strips, most_threads, work, turns, together, busy, moved, n, blocks, turn,
          sweep, sweeps, strips);
    }
  }
  launch_rows("svd_lengths" + suffix, batch * n, 32, work, lengths, n);
  launch_rows(
      "svd_finish" + suffix, batch * n, row_group(n), work, turns, lengths, order, outlines, busy, found.left,
      found.values, found.right, found.infos, n, sweeps, vectors);
  if (with_vectors) {
    const auto products = at::empty(columns, work.options());
    launch_rows("svd_complete" + suffix, batch, row_group(n), found.left, products, found.values, outlines, n);
  }
  return found;
}

// Those of (..., m, n), m >= n. The columns are scaled, sorted and factorized into Q and R. With R^H = X S Y^H, Q Y has
// the left vectors, and X the right ones.
Factors decompose(const Tensor& tall, bool full, bool with_vectors) {
  const auto m = static_cast<int>(tall.size(-2)), n = static_cast<int>(tall.size(-1));
  const auto batch = tall.sizes().slice(0, tall.dim() - 2);
  const auto columns = tall.mT().clone(MemoryFormat::Contiguous).resolve_conj();
  const auto suffix = "_" + scalarToMetalTypeString(columns);
  const auto options = columns.options(), real = options.dtype(real_type(columns));
  const auto count = matrices_of(columns);
  const auto outlines = at::empty({count, 2}, real), lengths = at::empty(with_last(batch, {n}), real);
  launch_rows("svd_outline" + suffix, count, most_threads, columns, outlines, m * n);
  launch_rows("svd_lengths" + suffix, count * n, 32, columns, lengths, m);
  const auto factors = at::empty_like(columns), order = at::empty(lengths.sizes(), options.dtype(kInt));
  launch_rows(
      "svd_sort" + suffix, count * n, row_group(std::max(m, n)), columns, lengths, outlines, factors, order, m, n);
  const auto taus = at::empty(with_last(batch, {n}), options);
  factorize(factors, taus);
  const auto inner = orthogonalize(factors, order, outlines, with_vectors);
  if (!with_vectors) {
    return {inner.right, inner.values, inner.left, inner.infos};
  }
  const auto whole = at::zeros(with_last(batch, {full ? m : n, m}), options);
  whole.narrow(-2, 0, n).narrow(-1, 0, n).copy_(inner.right);
  if (full) {
    whole.diagonal(0, -2, -1).narrow(-1, n, m - n).fill_(1.0);
  }
  apply_reflectors(whole, factors, taus, /*adjoint=*/false);
  return {whole, inner.values, inner.left, inner.infos};
}

constexpr const char* lstsq = "torch.linalg.lstsq";

// The right-hand sides as matrices, after the checks of the CPU, in its words.
Tensor checked_side(const Tensor& self, const Tensor& b, std::optional<std::string_view> driver) {
  TORCH_CHECK(self.dim() >= 2, lstsq, ": input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, lstsq, ": other must have at least 1 dimension.");
  TORCH_CHECK(
      self.scalar_type() == b.scalar_type(), lstsq,
      ": Expected input and other to have the same dtype, but got input's dtype ", self.scalar_type(),
      " and other's dtype ", b.scalar_type());
  const auto missing = self.dim() - b.dim();
  TORCH_CHECK(
      missing == 0 || missing == 1, lstsq,
      ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const bool is_vector = b.dim() == 1 || (missing == 1 && b.sizes().equals(self.sizes().slice(0, self.dim() - 1)));
  const auto side = is_vector ? b.unsqueeze(-1) : b;
  TORCH_CHECK(
      self.size(-2) == side.size(-2), lstsq, ": input.size(-2) should match other.size(-", is_vector ? 1 : 2, ")");
  TORCH_CHECK(
      side.dim() == self.dim() || b.size(0) == 1 || b.size(0) == self.size(0), "The size of tensor a (", self.size(0),
      ") must match the size of tensor b (", b.size(0), ") at non-singleton dimension 0");
  TORCH_CHECK(
      !driver || *driver == "gels" || *driver == "gelsy" || *driver == "gelsd" || *driver == "gelss", lstsq,
      ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return side;
}

void check_output(const Tensor& self, const Tensor& out, ScalarType dtype, const char* name) {
  TORCH_CHECK(
      out.device() == self.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
      self.device(), " and ", out.device(), "! (when checking argument ", name, " of ", lstsq, ")");
  TORCH_CHECK(
      canCast(dtype, out.scalar_type()), lstsq, ": Expected ", name, " to be safely castable from ", dtype,
      " dtype, but got ", name, " with dtype ", out.scalar_type());
}

void give(Tensor& out, const Tensor& result) {
  resize_output(out, result.sizes());
  assert_no_internal_overlap(out);
  out.copy_(result);
}

} // namespace

// A is U diag(S) Vh, singular values descend.
TORCH_IMPL_FUNC(_linalg_svd_U_mps)
(const Tensor& A,
 bool full_matrices,
 bool compute_uv,
 std::optional<std::string_view> driver,
 const Tensor& U,
 const Tensor& S,
 const Tensor& Vh) {
  TORCH_CHECK(
      !driver.has_value(),
      "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  if (A.numel() == 0) {
    if (compute_uv && full_matrices) {
      for (const auto& factor : {U, Vh}) {
        factor.zero_();
        factor.diagonal(0, -2, -1).fill_(1.0);
      }
    }
    return;
  }
  check_lapack_dtype(A, "linalg_svd_cpu");
  const bool tall = A.size(-2) >= A.size(-1);
  const auto found = decompose(tall ? A : A.mH(), full_matrices, compute_uv);
  if (!all_converged(found.infos, "linalg.svd", A.dim() == 2)) {
    const auto [u, s, vh] = at::_linalg_svd(A.cpu(), full_matrices, compute_uv);
    U.copy_(u);
    S.copy_(s);
    Vh.copy_(vh);
    return;
  }
  S.copy_(found.values);
  if (compute_uv) {
    U.copy_((tall ? found.left : found.right).mT());
    Vh.copy_((tall ? found.right : found.left).conj());
  }
}

// Of all solutions that come closest the shortest, whatever the driver's algorithm; the driver decides, as on the CPU,
// what else is returned.
std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> linalg_lstsq_out_mps(
    const Tensor& self,
    const Tensor& b,
    std::optional<double> rcond,
    std::optional<std::string_view> driver,
    Tensor& solution,
    Tensor& residuals,
    Tensor& rank,
    Tensor& singular_values) {
  const auto side = checked_side(self, b, driver);
  const auto real = real_type(self);
  check_output(self, solution, self.scalar_type(), "solution");
  check_output(self, residuals, real, "residuals");
  check_output(self, rank, kLong, "rank");
  check_output(self, singular_values, real, "singular_values");
  TORCH_CHECK(
      self.scalar_type() == kFloat || self.scalar_type() == kComplexFloat,
      "This function doesn't handle types other than float and double");
  const auto chosen = driver.value_or("gelsy");
  const auto m = self.size(-2), n = self.size(-1);
  const auto [left, values, right] = at::_linalg_svd(self, /*full_matrices=*/false, /*compute_uv=*/true);
  const double epsilon = std::numeric_limits<float>::epsilon();
  const double unit = rcond.value_or(epsilon * static_cast<double>(std::max(m, n)));
  const auto kept = chosen == "gels" ? values.gt(0) : values.gt(values.slice(-1, 0, 1).mul(unit));
  const auto inverse = at::where(kept, values.reciprocal(), 0).unsqueeze(-1);
  const auto nearest = [&](const Tensor& sides) {
    return at::matmul(right.mH(), inverse.mul(at::matmul(left.mH(), sides)));
  };
  const auto first = nearest(side);
  // What the rounding of the factors has left is taken off.
  const auto found = first.add(nearest(side.sub(at::matmul(self, first))));
  const auto ranks = kept.sum(-1);
  const auto none = at::empty({0}, values.options());
  // Only where every matrix has full rank, so that gelsd and gelss read the ranks back, as the CPU's do.
  const bool has_residuals = m > n && chosen != "gelsy" && (chosen == "gels" || ranks.eq(n).all().item<bool>());
  give(solution, side.dim() > b.dim() ? found.squeeze(-1) : found);
  give(residuals, has_residuals ? side.sub(at::matmul(self, found)).abs().square().sum(-2) : none);
  give(rank, chosen == "gels" ? at::empty({0}, ranks.options()) : ranks);
  give(singular_values, chosen == "gelsd" || chosen == "gelss" ? values : none);
  return {solution, residuals, rank, singular_values};
}
