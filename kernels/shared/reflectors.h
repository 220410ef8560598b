// What the names of the kernels begin with, `reflectors_of`, is the family's own and defined before this.
// One group makes so many reflectors, and applies them to each other, before all groups apply them to what is behind.
constexpr int panel = 32;
// A matrix with so few reflectors is left to one group from beginning to end.
constexpr int alone_below = 64;

inline int64_t matrices_of(const Tensor& x) {
  const auto elements = x.size(-2) * x.size(-1);
  return elements == 0 ? 0 : x.numel() / elements;
}

inline void reflect(
    const Tensor& columns, const Tensor& factors, const Tensor& taus, int skipped, int first, int last, bool adjoint) {
  const auto targets = static_cast<int>(columns.size(-2)), m = static_cast<int>(columns.size(-1));
  const auto groups = matrices_of(columns) * (targets - skipped);
  if (groups != 0) {
    launch_rows(
        reflectors_of + "reflect_" + scalarToMetalTypeString(columns), groups, 32, columns, factors, taus, m, targets,
        skipped, static_cast<int>(factors.size(-2)), static_cast<int>(taus.size(-1)), first, last,
        static_cast<int>(adjoint));
  }
}

// Makes reflectors of matrices whose columns are the rows of `columns`, (..., n, m), contiguous, in place.
inline void factorize(const Tensor& columns, const Tensor& taus) {
  const auto n = static_cast<int>(columns.size(-2)), m = static_cast<int>(columns.size(-1));
  const auto reflectors = std::min(m, n);
  const auto batch = matrices_of(columns);
  if (batch == 0) {
    return;
  }
  const auto width = reflectors <= alone_below ? reflectors : panel;
  const bool alone = width == reflectors && n <= 2 * alone_below;
  for (int first = 0; first < reflectors; first += width) {
    const auto last = std::min(first + width, reflectors);
    launch_rows(
        reflectors_of + "panel_" + scalarToMetalTypeString(columns), batch, 256, columns, taus, m, n, first, last,
        alone ? n : last);
    if (last < n && !alone) {
      reflect(columns, columns, taus, last, first, last, /*adjoint=*/true);
    }
  }
}

// Replaces C by Q C, or by the adjoint of Q times C, in place; the columns of C are the rows of `columns`, (..., c, m),
// contiguous, and the factors those that `factorize` left, (..., n, m).
inline void apply_reflectors(const Tensor& columns, const Tensor& factors, const Tensor& taus, bool adjoint) {
  reflect(columns, factors, taus, 0, 0, static_cast<int>(taus.size(-1)), adjoint);
}
