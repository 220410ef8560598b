// What the stand-in for MPSGraph and the CPU operators ask Accelerate's LAPACK for, computed by that of the torch in the
// other process. What is not here is an error, so that the process goes on.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "remote.h"

namespace {

using Single = std::complex<float>;
using Double = std::complex<double>;
using Option = const char*;
using Size = const int*;

// The memory behind an argument; what is not const comes back.
struct Part {
  const void* from;
  void* to;
  size_t bytes;
  template <typename T>
  Part(const T* memory, int64_t count = 1) : from(memory), to(nullptr), bytes(count * sizeof(T)) {}
  template <typename T>
  Part(T* memory, int64_t count = 1) : from(memory), to(memory), bytes(count * sizeof(T)) {}
  size_t aligned() const { return (bytes + 15) / 16 * 16; }
};

// A matrix's columns are `rows` long, and start each `stride` behind the one before.
int64_t matrix(int64_t rows, int64_t columns, int64_t stride) {
  return columns > 0 ? (columns - 1) * stride + rows : 0;
}

void ask(std::string name, std::initializer_list<Part> parts) {
  std::string request;
  for (const Part& part : parts) {
    name += ' ' + std::to_string(part.aligned());
    request.append(static_cast<const char*>(part.from), part.bytes).append(part.aligned() - part.bytes, 0);
  }
  const std::string answer = remote_answer("lapack", name + '\n' + request);
  size_t at = 0;
  for (const Part& part : parts) {
    if (part.to != nullptr) memcpy(part.to, answer.data() + at, part.bytes);
    at += part.aligned();
  }
}

bool is(Option option, char letter) { return (*option | 0x20) == letter; }

[[noreturn]] void refuse(const char* name) {
  throw std::runtime_error(std::string(name) + " of LAPACK is not simulated");
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

// The type of singular values and eigenvalues is R. A call with a size of -1 asks for the size of its work memory.
#define FOR_EACH_TYPE(LETTER, HERMITIAN, T, R, ... /* the memory that complex types need besides */) \
  void LETTER##trsm_( \
      Option side, Option uplo, Option trans, Option diag, Size m, Size n, const T* factor, const T* a, Size lda, \
      T* b, Size ldb) { \
    const int size = is(side, 'l') ? *m : *n; \
    ask(#LETTER "trsm_", \
        {side, uplo, trans, diag, m, n, factor, {a, matrix(size, size, *lda)}, lda, {b, matrix(*m, *n, *ldb)}, ldb}); \
  } \
  void LETTER##getrf_(Size m, Size n, T* a, Size lda, int* ipiv, int* info) { \
    ask(#LETTER "getrf_", {m, n, {a, matrix(*m, *n, *lda)}, lda, {ipiv, std::min(*m, *n)}, info}); \
  } \
  void LETTER##getrs_( \
      Option trans, Size n, Size nrhs, const T* a, Size lda, const int* ipiv, T* b, Size ldb, int* info) { \
    ask(#LETTER "getrs_", \
        {trans, n, nrhs, {a, matrix(*n, *n, *lda)}, lda, {ipiv, *n}, {b, matrix(*n, *nrhs, *ldb)}, ldb, info}); \
  } \
  void LETTER##potrf_(Option uplo, Size n, T* a, Size lda, int* info) { \
    ask(#LETTER "potrf_", {uplo, n, {a, matrix(*n, *n, *lda)}, lda, info}); \
  } \
  void LETTER##potrs_(Option uplo, Size n, Size nrhs, const T* a, Size lda, T* b, Size ldb, int* info) { \
    ask(#LETTER "potrs_", {uplo, n, nrhs, {a, matrix(*n, *n, *lda)}, lda, {b, matrix(*n, *nrhs, *ldb)}, ldb, info}); \
  } \
  void LETTER##gesdd_( \
      Option jobz, Size m, Size n, T* a, Size lda, R* s, T* u, Size ldu, T* vt, Size ldvt, T* work, \
      Size lwork __VA_OPT__(, R*), int* iwork, int* info) { \
    const int64_t least = std::min(*m, *n), most = std::max(*m, *n), all = is(jobz, 'a'), vectors = !is(jobz, 'n'); \
    __VA_OPT__(std::vector<R> __VA_ARGS__(least * (5 * least + 2 * most + 8) + 1);) \
    ask(#LETTER "gesdd_", \
        {jobz, \
         m, \
         n, \
         {a, matrix(*m, *n, *lda)}, \
         lda, \
         {s, least}, \
         {u, vectors * matrix(*m, all ? *m : least, *ldu)}, \
         ldu, \
         {vt, vectors * matrix(all ? *n : least, *n, *ldvt)}, \
         ldvt, \
         {work, std::max(*lwork, 1)}, \
         lwork __VA_OPT__(, {__VA_ARGS__.data(), int64_t(__VA_ARGS__.size())}), \
         {iwork, 8 * least}, \
         info}); \
  } \
  void LETTER##HERMITIAN##evd_( \
      Option jobz, Option uplo, Size n, T* a, Size lda, R* w, T* work, \
      Size lwork __VA_OPT__(, R* __VA_ARGS__, Size size), int* iwork, Size liwork, int* info) { \
    ask(#LETTER #HERMITIAN "evd_", \
        {jobz, \
         uplo, \
         n, \
         {a, matrix(*n, *n, *lda)}, \
         lda, \
         {w, *n}, \
         {work, std::max(*lwork, 1)}, \
         lwork __VA_OPT__(, {__VA_ARGS__, std::max(*size, 1)}, size), \
         {iwork, std::max(*liwork, 1)}, \
         liwork, \
         info}); \
  }
FOR_EACH_TYPE(s, sy, float, float)
FOR_EACH_TYPE(d, sy, double, double)
FOR_EACH_TYPE(c, he, Single, float, rwork)
FOR_EACH_TYPE(z, he, Double, double, rwork)

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
REFUSED_PAIRS(potri_, potri_)
REFUSED_PAIRS(sytrf_, sytrf_)
REFUSED_PAIRS(sytrs_, sytrs_)
REFUSED_PAIRS(orgqr_, ungqr_)
REFUSED_PAIRS(ormqr_, unmqr_)
REFUSED_HERMITIAN(hetrf_)
REFUSED_HERMITIAN(hetrs_)

#pragma GCC visibility pop
}
