namespace {

#include "shared/lapack.h"
#include "shared/launch.h"

// Launches are made before it is known how many sweeps it takes, mostly 5 to 8; those that find nothing to turn do nothing.
constexpr int sweeps = 8, most_read_backs = 4;
constexpr int64_t most_threads = 256;

// Rows that a group has room for: ROOM of the Metal source.
int room_of(const Tensor& matrices) { return matrices.is_complex() ? 32 : 48; }

// What a solver reads and writes; rows of the vectors become eigenvectors.
struct Problem {
  Tensor matrices;
  Tensor values;
  Tensor vectors;
  Tensor infos;
  int upper;
  int with_vectors;
};

// One launch, a group a matrix.
void solve_small(const Problem& of) {
  const auto n = static_cast<int>(of.matrices.size(-1));
  launch_rows(
      "eigh_small_" + scalarToMetalTypeString(of.matrices), of.infos.numel(), row_group(n * n / 4), of.matrices,
      of.values, of.vectors, of.infos, n, of.upper, of.with_vectors);
}

// Two launches a round of block pairs, each over the whole of all matrices.
void solve_large(const Problem& of) {
  const auto suffix = "_" + scalarToMetalTypeString(of.matrices);
  const auto n = static_cast<int>(of.matrices.size(-1)), room = room_of(of.matrices);
  const auto batch = of.infos.numel();
  const auto needed = (n + room / 2 - 1) / (room / 2);
  const auto blocks = needed + needed % 2, pairs = blocks / 2;
  const auto real = of.values.options(), whole = real.dtype(kInt);
  const auto work = at::empty_like(of.matrices), unordered = at::empty_like(of.vectors);
  const auto scalings = at::empty({batch, 3}, real), lows = at::zeros({batch, n}, real);
  const auto moved = at::empty({batch, pairs}, whole);
  const auto accumulated = at::empty({batch, pairs, room, room}, of.matrices.options());
  launch_rows("eigh_scaling" + suffix, batch, most_threads, of.matrices, scalings, n, of.upper);
  launch_rows(
      "eigh_begin" + suffix, batch * n, row_group(n), of.matrices, scalings, work, unordered, n, of.upper,
      of.with_vectors);
  const auto of_vectors = of.with_vectors ? pairs * ((n + room - 1) / room) : 0;
  const auto tiles = pairs * (pairs - 1) / 2 + of_vectors;
  for (int read_back = 0; read_back < most_read_backs; ++read_back) {
    const auto busy = at::zeros({batch, sweeps}, whole);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (int turn = 0; turn < blocks - 1; ++turn) {
        launch_rows(
            "eigh_pair_rotations" + suffix, batch * pairs, most_threads, work, lows, accumulated, busy, moved, scalings,
            n, blocks, turn, sweep, sweeps);
        launch_rows(
            "eigh_apply" + suffix, batch * tiles, most_threads, work, unordered, accumulated, busy, moved, n, blocks,
            turn, sweep, sweeps, tiles);
      }
    }
    launch_rows(
        "eigh_finish" + suffix, batch * n, row_group(n), work, unordered, scalings, busy, of.values, of.vectors,
        of.infos, n, sweeps, of.with_vectors);
    if (of.infos.max().item<int>() <= 0) {
      break;
    }
  }
  if (of.with_vectors) {
    // One step of Newton's iteration for the polar factor makes the accumulated rotations orthonormal again.
    const auto gap = at::eye(n, of.vectors.options()).sub_(at::matmul(of.vectors, of.vectors.mH()));
    of.vectors.add_(at::matmul(gap, of.vectors), 0.5);
  }
}

} // namespace

TORCH_IMPL_FUNC(_linalg_eigh_eigenvalues_mps)
(const Tensor& A, std::string_view uplo, bool compute_v, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  if (A.numel() == 0) {
    return;
  }
  check_lapack_dtype(A, "linalg_eigh_cpu");
  const auto matrices = A.contiguous();
  const bool in_place = eigenvalues.is_contiguous() && (!compute_v || eigenvectors.mT().is_contiguous());
  const auto values = in_place ? eigenvalues : at::empty(eigenvalues.sizes(), eigenvalues.options());
  const auto vectors =
      in_place && compute_v ? eigenvectors.mT() : at::empty_like(compute_v ? matrices : matrices.narrow(0, 0, 0));
  const auto infos = at::empty(A.sizes().slice(0, A.dim() - 2), A.options().dtype(kInt));
  const Problem problem = {matrices, values, vectors, infos, uplo == "U" || uplo == "u", compute_v};
  A.size(-1) <= room_of(A) ? solve_small(problem) : solve_large(problem);
  if (!all_converged(infos, "linalg.eigh", A.dim() == 2)) {
    const auto [w, v] = at::_linalg_eigh(A.cpu(), uplo, compute_v);
    eigenvalues.copy_(w);
    eigenvectors.copy_(v);
    return;
  }
  if (!in_place) {
    eigenvalues.copy_(values);
    if (compute_v) {
      eigenvectors.copy_(vectors.mT());
    }
  }
}
