// What the stand-in for MPSGraph and its CPU operators ask Accelerate for to solve systems, column by column, in the
// plainest way. The rest of LAPACK is errors, so that the process goes on.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

using Single = std::complex<float>;
using Double = std::complex<double>;
using Option = const char*;

template <typename T>
T conjugated(T value) {
  return value;
}
template <typename T>
std::complex<T> conjugated(std::complex<T> value) {
  return std::conj(value);
}
// As LAPACK compares pivots.
template <typename T>
T size_of(T value) {
  return std::abs(value);
}
template <typename T>
T size_of(std::complex<T> value) {
  return std::abs(value.real()) + std::abs(value.imag());
}

// A matrix whose element (i, j) is at i * rows + j * columns.
template <typename T>
struct Matrix {
  T* first;
  int64_t rows, columns;
  T& operator()(int64_t i, int64_t j) const { return first[i * rows + j * columns]; }
  Matrix transposed() const { return {first, columns, rows}; }
};

// X of A X = factor B, in B's place, for a triangle A of `size` rows.
template <typename T>
void solve_triangle(
    int64_t size, int64_t columns, T factor, Matrix<const T> a, bool lower, bool conjugates, bool unit, Matrix<T> b) {
  const auto value = [&](int64_t i, int64_t j) { return conjugates ? conjugated(a(i, j)) : a(i, j); };
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t step = 0; step < size; ++step) {
      const int64_t i = lower ? step : size - 1 - step;
      T left = factor * b(i, j);
      for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : size); ++k) left -= value(i, k) * b(k, j);
      b(i, j) = unit ? left : left / value(i, i);
    }
}

bool is(Option option, char letter) { return (*option | 0x20) == letter; }

// X op(A) = B is op(A)^T X^T = B^T.
template <typename T>
void trsm(Option side, Option uplo, Option op, Option diag, int m, int n, T by, const T* a, int lda, T* b, int ldb) {
  const bool left = is(side, 'l'), transposes = !is(op, 'n');
  Matrix<const T> triangular{a, 1, lda};
  Matrix<T> right{b, 1, ldb};
  if (transposes == left) triangular = triangular.transposed();
  if (!left) right = right.transposed();
  const bool lower = is(uplo, 'l') != (transposes == left);
  solve_triangle(left ? m : n, left ? n : m, by, triangular, lower, is(op, 'c'), is(diag, 'u'), right);
}

template <typename T>
void getrf(int m, int n, T* memory, int lda, int* ipiv, int* info) {
  const Matrix<T> a{memory, 1, lda};
  *info = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i)
      if (size_of(a(i, k)) > size_of(a(pivot, k))) pivot = i;
    ipiv[k] = static_cast<int>(pivot) + 1;
    if (a(pivot, k) == T{}) {
      if (*info == 0) *info = static_cast<int>(k) + 1;
      continue;
    }
    for (int64_t j = 0; pivot != k && j < n; ++j) std::swap(a(k, j), a(pivot, j));
    for (int64_t i = k + 1; i < m; ++i) a(i, k) /= a(k, k);
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = k + 1; i < m; ++i) a(i, j) -= a(i, k) * a(k, j);
  }
}

template <typename T>
void getrs(Option trans, int n, int nrhs, const T* a, int lda, const int* ipiv, T* memory, int ldb) {
  const Matrix<T> b{memory, 1, ldb};
  const auto interchange = [&](int64_t i) {
    for (int64_t j = 0; j < nrhs && ipiv[i] - 1 != i; ++j) std::swap(b(i, j), b(ipiv[i] - 1, j));
  };
  const bool transposes = !is(trans, 'n');
  for (int64_t i = 0; !transposes && i < n; ++i) interchange(i);
  trsm("l", transposes ? "u" : "l", trans, transposes ? "n" : "u", n, nrhs, T(1), a, lda, memory, ldb);
  trsm("l", transposes ? "l" : "u", trans, transposes ? "u" : "n", n, nrhs, T(1), a, lda, memory, ldb);
  for (int64_t i = n; transposes && i-- > 0;) interchange(i);
}

template <typename T>
void potrf(Option uplo, int n, T* memory, int lda, int* info) {
  Matrix<T> a{memory, 1, lda};
  const bool upper = is(uplo, 'u');
  if (upper) a = a.transposed();  // U^H U = A is L L^H = A^T, for the conjugate of L
  *info = 0;
  for (int64_t j = 0; j < n; ++j) {
    auto square = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) square -= std::norm(a(j, k));
    if (!(square > 0)) {
      *info = static_cast<int>(j) + 1;
      return;
    }
    a(j, j) = std::sqrt(square);
    for (int64_t i = j + 1; i < n; ++i) {
      for (int64_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * conjugated(a(j, k));
      a(i, j) /= a(j, j);
    }
  }
}

template <typename T>
void potrs(Option uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb) {
  const bool upper = is(uplo, 'u');
  trsm("l", uplo, upper ? "c" : "n", "n", n, nrhs, T(1), a, lda, b, ldb);
  trsm("l", uplo, upper ? "n" : "c", "n", n, nrhs, T(1), a, lda, b, ldb);
}

[[noreturn]] void refuse(const char* name) {
  throw std::runtime_error(std::string(name) + " of LAPACK is not simulated");
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

#define FOR_EACH_TYPE(LETTER, T) \
  void LETTER##trsm_( \
      Option side, Option uplo, Option trans, Option diag, const int* m, const int* n, const T* factor, const T* a, \
      const int* lda, T* b, const int* ldb) { \
    trsm(side, uplo, trans, diag, *m, *n, *factor, a, *lda, b, *ldb); \
  } \
  void LETTER##getrf_(const int* m, const int* n, T* a, const int* lda, int* ipiv, int* info) { \
    getrf(*m, *n, a, *lda, ipiv, info); \
  } \
  void LETTER##getrs_( \
      Option trans, const int* n, const int* nrhs, const T* a, const int* lda, const int* ipiv, T* b, const int* ldb, \
      int* info) { \
    getrs(trans, *n, *nrhs, a, *lda, ipiv, b, *ldb); \
    *info = 0; \
  } \
  void LETTER##potrf_(Option uplo, const int* n, T* a, const int* lda, int* info) { potrf(uplo, *n, a, *lda, info); } \
  void LETTER##potrs_( \
      Option uplo, const int* n, const int* nrhs, const T* a, const int* lda, T* b, const int* ldb, int* info) { \
    potrs(uplo, *n, *nrhs, a, *lda, b, *ldb); \
    *info = 0; \
  }
FOR_EACH_TYPE(s, float)
FOR_EACH_TYPE(d, double)
FOR_EACH_TYPE(c, Single)
FOR_EACH_TYPE(z, Double)

#define REFUSED(NAME) \
  void NAME() { refuse(#NAME); }
#define REFUSED_HERMITIAN(NAME) REFUSED(c##NAME) REFUSED(z##NAME)
#define REFUSED_PAIRS(REAL, COMPLEX) REFUSED(s##REAL) REFUSED(d##REAL) REFUSED(c##COMPLEX) REFUSED(z##COMPLEX)
REFUSED_PAIRS(geev_, geev_)
REFUSED_PAIRS(gels_, gels_)
REFUSED_PAIRS(gelsd_, gelsd_)
REFUSED_PAIRS(gelss_, gelss_)
REFUSED_PAIRS(gelsy_, gelsy_)
REFUSED_PAIRS(geqrf_, geqrf_)
REFUSED_PAIRS(gesdd_, gesdd_)
REFUSED_PAIRS(potri_, potri_)
REFUSED_PAIRS(sytrf_, sytrf_)
REFUSED_PAIRS(sytrs_, sytrs_)
REFUSED_PAIRS(orgqr_, ungqr_)
REFUSED_PAIRS(ormqr_, unmqr_)
REFUSED_PAIRS(syevd_, heevd_)
REFUSED_HERMITIAN(hetrf_)
REFUSED_HERMITIAN(hetrs_)

#pragma GCC visibility pop
}
