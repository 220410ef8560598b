// The part of BLAS that the wheel's CPU operators ask Accelerate for, column by column, in the plainest way: the stand-in
// for MPSGraph multiplies with it. Sums are split, so that thousands of products lose few digits.
#include <complex>
#include <cstdint>

namespace {

using Single = std::complex<float>;
using Double = std::complex<double>;

template <typename T>
T conjugated(T value, bool) {
  return value;
}
template <typename T>
std::complex<T> conjugated(std::complex<T> value, bool really) {
  return really ? std::conj(value) : value;
}
bool is_transposed(char how) { return how != 'n' && how != 'N'; }
bool is_conjugated(char how) { return how == 'c' || how == 'C'; }

// A factor of a product: its elements as they are read, transposed or conjugated.
template <typename T>
struct Factor {
  const T* first;
  int64_t leading;
  char how;
  T operator()(int64_t row, int64_t column) const {
    const T value = is_transposed(how) ? first[column + row * leading] : first[row + column * leading];
    return conjugated(value, is_conjugated(how));
  }
};

// Eight sums, each of every eighth product, added up in pairs.
template <typename T, typename Product>
T sum_of(int64_t number, Product product) {
  T sums[8]{};
  for (int64_t p = 0; p < number; ++p) sums[p % 8] += product(p);
  for (int half = 4; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, T alpha, Factor<T> a, Factor<T> b, T beta, T* c, int64_t leading) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      const T sum = sum_of<T>(k, [&](int64_t p) { return a(i, p) * b(p, j); });
      T& place = c[i + j * leading];
      place = alpha * sum + (beta == T{} ? T{} : beta * place); // what beta 0 hides may be NaN
    }
}

template <typename T>
T* begin_of(T* vector, int n, int step) {
  return step < 0 ? vector - int64_t(n - 1) * step : vector;
}
template <typename T>
T dot(int n, const T* x, int x_step, const T* y, int y_step, bool conjugates) {
  x = begin_of(x, n, x_step), y = begin_of(y, n, y_step);
  return sum_of<T>(n, [=](int64_t i) { return conjugated(x[i * x_step], conjugates) * y[i * y_step]; });
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

#define FOR_EACH_TYPE(LETTER, T) \
  void LETTER##gemm_( \
      const char* how_a, const char* how_b, const int* m, const int* n, const int* k, const T* alpha, const T* a, \
      const int* a_leading, const T* b, const int* b_leading, const T* beta, T* c, const int* c_leading) { \
    multiply<T>(*m, *n, *k, *alpha, {a, *a_leading, *how_a}, {b, *b_leading, *how_b}, *beta, c, *c_leading); \
  } \
  void LETTER##axpy_(const int* n, const T* alpha, const T* x, const int* x_step, T* y, const int* y_step) { \
    x = begin_of(x, *n, *x_step), y = begin_of(y, *n, *y_step); \
    for (int64_t i = 0; i < *n; ++i) y[i * *y_step] += *alpha * x[i * *x_step]; \
  } \
  void LETTER##copy_(const int* n, const T* x, const int* x_step, T* y, const int* y_step) { \
    x = begin_of(x, *n, *x_step), y = begin_of(y, *n, *y_step); \
    for (int64_t i = 0; i < *n; ++i) y[i * *y_step] = x[i * *x_step]; \
  }
FOR_EACH_TYPE(s, float)
FOR_EACH_TYPE(d, double)
FOR_EACH_TYPE(c, Single)
FOR_EACH_TYPE(z, Double)

#define FOR_EACH_REAL_TYPE(LETTER, T) \
  void LETTER##gemv_( \
      const char* how, const int* m, const int* n, const T* alpha, const T* a, const int* leading, const T* x, \
      const int* x_step, const T* beta, T* y, const int* y_step) { \
    const int rows = is_transposed(*how) ? *n : *m, columns = is_transposed(*how) ? *m : *n; \
    x = begin_of(x, columns, *x_step), y = begin_of(y, rows, *y_step); \
    const Factor<T> matrix{a, *leading, *how}; \
    for (int64_t i = 0; i < rows; ++i) { \
      const T sum = sum_of<T>(columns, [&](int64_t k) { return matrix(i, k) * x[k * *x_step]; }); \
      T& place = y[i * *y_step]; \
      place = *alpha * sum + (*beta == 0 ? 0 : *beta * place); \
    } \
  } \
  void LETTER##scal_(const int* n, const T* alpha, T* x, const int* step) { \
    for (int64_t i = 0; i < *n; ++i) x[i * *step] *= *alpha; \
  }
FOR_EACH_REAL_TYPE(s, float)
FOR_EACH_REAL_TYPE(d, double)

float cblas_sdot(int n, const float* x, int x_step, const float* y, int y_step) {
  return dot(n, x, x_step, y, y_step, false);
}
double ddot_(const int* n, const double* x, const int* x_step, const double* y, const int* y_step) {
  return dot(*n, x, *x_step, y, *y_step, false);
}
#define FOR_EACH_COMPLEX_TYPE(NAME, T, CONJUGATES) \
  void cblas_##NAME(int n, const T* x, int x_step, const T* y, int y_step, T* result) { \
    *result = dot(n, x, x_step, y, y_step, CONJUGATES); \
  }
FOR_EACH_COMPLEX_TYPE(cdotu_sub, Single, false)
FOR_EACH_COMPLEX_TYPE(cdotc_sub, Single, true)
FOR_EACH_COMPLEX_TYPE(zdotu_sub, Double, false)
FOR_EACH_COMPLEX_TYPE(zdotc_sub, Double, true)

#pragma GCC visibility pop
}
