// Value types: vectors, packed vectors, matrices, array; and casts.
//
// A vector is a class because clang's own vector extension has no constructor from parts, no references to elements
// and no bool vectors. The rewriter turns `v.xyz` into `v.template swizzle<0, 1, 2>()`, or, if it is assigned to, into
// `v.template swizzle_reference<0, 1, 2>()`.
#pragma once
#include "traits.h"

namespace metal {
template <int... I> struct msl_indices {};
template <int N, int... I> struct msl_count_to : msl_count_to<N - 1, N - 1, I...> {};
template <int... I> struct msl_count_to<0, I...> { typedef msl_indices<I...> type; };
template <int N> using msl_range = typename msl_count_to<N>::type;

// clang forbids casts between half and bfloat: go through float.
template <class R, class A> constexpr MSL_INLINE R msl_convert(A a) {
  if constexpr (msl_is_float<R>::value && msl_is_float<A>::value && sizeof(R) == 2 && sizeof(A) == 2)
    return (R)(float)a;
  else
    return (R)a;
}
template <class R, class A> constexpr MSL_INLINE R msl_cast(A&& a) {
  typedef decay_t<A> D;
  if constexpr (is_scalar<R>::value && is_scalar<D>::value)
    return msl_convert<R>((D)a);
  else
    return static_cast<R>(static_cast<A&&>(a));
}
// `(half)x` becomes `msl_c_cast<half>()->*x`: an operator that binds as tightly as a cast does.
template <class R> struct msl_c_cast {
  template <class A> constexpr MSL_INLINE R operator->*(A a) const { return msl_convert<R>(a); }
};

template <class T> struct msl_parts {
  typedef T scalar;
  enum { count = 1, is_vector = 0 };
};
template <class T, int N> struct msl_parts<vec<T, N>> {
  typedef T scalar;
  enum { count = N, is_vector = 1 };
};
template <class T, int N> struct msl_parts<packed_vec<T, N>> {
  typedef T scalar;
  enum { count = N, is_vector = 1 };
};

// The common vector type of arguments such as `fma(v, 2.0f, v)`.
template <class A> struct msl_meeting {
  typedef void type;
  enum { joins = is_scalar<A>::value };
};
template <class T, int N> struct msl_meeting<vec<T, N>> {
  typedef vec<T, N> type;
  enum { joins = 0 };
};
template <class T, int N> struct msl_meeting<packed_vec<T, N>> {
  typedef vec<T, N> type;
  enum { joins = 1 };
};
template <class... A> struct msl_first_vector { typedef void type; };
template <class A, class... B> struct msl_first_vector<A, B...> {
  typedef typename msl_meeting<A>::type own;
  typedef conditional_t<is_same<own, void>::value, typename msl_first_vector<B...>::type, own> type;
};
template <class V, class... A> struct msl_can_meet {
  enum {
    value = !is_same<V, void>::value && (msl_meeting<A>::joins || ...) &&
        ((is_same<V, typename msl_meeting<A>::type>::value || is_scalar<A>::value) && ...)
  };
};
template <class... A>
using msl_met = enable_if_t<msl_can_meet<typename msl_first_vector<A...>::type, A...>::value,
                            typename msl_first_vector<A...>::type>;

template <class T, int N> struct msl_storage;
template <class T> struct msl_storage<T, 2> {
  union {
    T elements[2];
    struct { T x, y; };
    struct { T r, g; };
  };
  msl_storage() = default;
  constexpr MSL_INLINE msl_storage(T a, T b) : x(a), y(b) {}
};
template <class T> struct msl_storage<T, 3> {
  union {
    T elements[3];
    struct { T x, y, z; };
    struct { T r, g, b; };
  };
  msl_storage() = default;
  constexpr MSL_INLINE msl_storage(T a, T b, T c) : x(a), y(b), z(c) {}
};
template <class T> struct msl_storage<T, 4> {
  union {
    T elements[4];
    struct { T x, y, z, w; };
    struct { T r, g, b, a; };
  };
  msl_storage() = default;
  constexpr MSL_INLINE msl_storage(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
};

// Element K of a scalar (itself) or a vector; also in constant expressions, which cannot read the union's array.
template <int K, class A> constexpr MSL_INLINE auto msl_part(A a) {
  if constexpr (!msl_parts<A>::is_vector) return a;
  else if constexpr (K == 0) return a.x;
  else if constexpr (K == 1) return a.y;
  else if constexpr (K == 2) return a.z;
  else return a.w;
}
// Element K of concatenated scalars and vectors.
template <class S, int K, class A, class... B> constexpr MSL_INLINE S msl_flat_part(A a, B... b) {
  constexpr int n = msl_parts<A>::count;
  if constexpr (K < n) return msl_convert<S>(msl_part<K>(a));
  else return msl_flat_part<S, K - n>(b...);
}

template <class V, class R, int... I> struct msl_swizzle_reference {
  MSL_GENERIC V& v;
  MSL_INLINE R get() const { return R(v.elements[I]...); }
  MSL_INLINE operator R() const { return get(); }
  MSL_INLINE void operator=(R o) const {
    int k = 0;
    ((v.elements[I] = o.elements[k++]), ...);
  }
  MSL_INLINE void operator+=(R o) const { *this = get() + o; }
  MSL_INLINE void operator-=(R o) const { *this = get() - o; }
  MSL_INLINE void operator*=(R o) const { *this = get() * o; }
  MSL_INLINE void operator/=(R o) const { *this = get() / o; }
  MSL_INLINE void operator%=(R o) const { *this = get() % o; }
  MSL_INLINE void operator&=(R o) const { *this = get() & o; }
  MSL_INLINE void operator|=(R o) const { *this = get() | o; }
  MSL_INLINE void operator^=(R o) const { *this = get() ^ o; }
  MSL_INLINE void operator<<=(R o) const { *this = get() << o; }
  MSL_INLINE void operator>>=(R o) const { *this = get() >> o; }
};

template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 4 : N)) vec : msl_storage<T, N> {
  typedef T value_type;
  typedef msl_storage<T, N> storage;

  vec() = default;
  template <class U, enable_if_t<is_scalar<U>::value, int> = 0>
  constexpr MSL_INLINE vec(U s) : vec(msl_range<N>(), msl_convert<T>(s)) {}
  template <class U, enable_if_t<!is_same<U, T>::value, int> = 0>
  constexpr MSL_INLINE explicit vec(vec<U, N> o) : vec(o, msl_range<N>()) {}
  // `float3(colour)` of a float4, as Apple's samples write it.
  template <class U, int M, enable_if_t<(M > N), int> = 0>
  constexpr MSL_INLINE explicit vec(vec<U, M> o) : vec(o, msl_range<N>()) {}
  constexpr MSL_INLINE vec(packed_vec<T, N> o) : vec(o, msl_range<N>()) {}
  template <class U, enable_if_t<!is_same<U, T>::value, int> = 0>
  constexpr MSL_INLINE explicit vec(packed_vec<U, N> o) : vec(o, msl_range<N>()) {}
  // A class has no implicit copy from and to volatile memory.
  template <class U, enable_if_t<is_same<U, vec>::value, int> = 0>
  MSL_INLINE vec(const volatile MSL_GENERIC U& o) : vec(o, msl_range<N>()) {}
  template <class U, enable_if_t<is_same<U, vec>::value, int> = 0> MSL_INLINE void operator=(U o) volatile {
    for (int i = 0; i < N; i++) this->elements[i] = o.elements[i];
  }
  template <class A, class B, class... C,
            enable_if_t<(msl_parts<A>::count + msl_parts<B>::count + (0 + ... + msl_parts<C>::count)) == N, int> = 0>
  constexpr MSL_INLINE vec(A a, B b, C... c) : vec(msl_range<N>(), a, b, c...) {}

  MSL_INLINE T& operator[](int i) { return this->elements[i]; }
  MSL_INLINE const T& operator[](int i) const { return this->elements[i]; }

  template <int... I> constexpr MSL_INLINE vec<T, sizeof...(I)> swizzle() const {
    return vec<T, sizeof...(I)>(msl_part<I>(*this)...);
  }
  template <int... I> MSL_INLINE msl_swizzle_reference<vec, vec<T, sizeof...(I)>, I...> swizzle_reference() {
    return msl_swizzle_reference<vec, vec<T, sizeof...(I)>, I...>{*this};
  }

#define MSL_ASSIGN(op) \
  MSL_INLINE MSL_GENERIC vec& operator op##=(vec o) { \
    for (int i = 0; i < N; i++) this->elements[i] = (T)(this->elements[i] op o.elements[i]); \
    return *this; \
  }
  MSL_ASSIGN(+) MSL_ASSIGN(-) MSL_ASSIGN(*) MSL_ASSIGN(/) MSL_ASSIGN(%)
  MSL_ASSIGN(&) MSL_ASSIGN(|) MSL_ASSIGN(^) MSL_ASSIGN(<<) MSL_ASSIGN(>>)
#undef MSL_ASSIGN
#define MSL_UNARY(R, op) \
  MSL_INLINE vec<R, N> operator op() const { \
    vec<R, N> r; \
    for (int i = 0; i < N; i++) r.elements[i] = (R)(op this->elements[i]); \
    return r; \
  }
  MSL_UNARY(T, -) MSL_UNARY(T, ~) MSL_UNARY(bool, !)
#undef MSL_UNARY
  MSL_INLINE vec operator+() const { return *this; }
  MSL_INLINE MSL_GENERIC vec& operator++() { return *this += vec((T)1); }
  MSL_INLINE MSL_GENERIC vec& operator--() { return *this -= vec((T)1); }
  MSL_INLINE vec operator++(int) { vec old = *this; *this += vec((T)1); return old; }
  MSL_INLINE vec operator--(int) { vec old = *this; *this -= vec((T)1); return old; }

#define MSL_BINARY(R, op) \
  friend MSL_INLINE vec<R, N> operator op(vec a, vec b) { \
    vec<R, N> r; \
    for (int i = 0; i < N; i++) r.elements[i] = (R)(a.elements[i] op b.elements[i]); \
    return r; \
  } \
  template <class U, enable_if_t<is_scalar<U>::value, int> = 0> \
  friend MSL_INLINE vec<R, N> operator op(vec a, U b) { return a op vec(b); } \
  template <class U, enable_if_t<is_scalar<U>::value, int> = 0> \
  friend MSL_INLINE vec<R, N> operator op(U a, vec b) { return vec(a) op b; }
  MSL_BINARY(T, +) MSL_BINARY(T, -) MSL_BINARY(T, *) MSL_BINARY(T, /) MSL_BINARY(T, %)
  MSL_BINARY(T, &) MSL_BINARY(T, |) MSL_BINARY(T, ^) MSL_BINARY(T, <<) MSL_BINARY(T, >>)
  MSL_BINARY(bool, <) MSL_BINARY(bool, >) MSL_BINARY(bool, <=) MSL_BINARY(bool, >=)
  MSL_BINARY(bool, ==) MSL_BINARY(bool, !=) MSL_BINARY(bool, &&) MSL_BINARY(bool, ||)
#undef MSL_BINARY

  // The two operands of a shift may differ in type.
#define MSL_SHIFT(op) \
  template <class U, enable_if_t<is_integral<U>::value && !is_same<U, T>::value, int> = 0> \
  friend MSL_INLINE vec operator op(vec a, vec<U, N> b) { \
    for (int i = 0; i < N; i++) a.elements[i] = (T)(a.elements[i] op b.elements[i]); \
    return a; \
  } \
  template <class U, enable_if_t<is_integral<U>::value && !is_same<U, T>::value, int> = 0> \
  MSL_INLINE MSL_GENERIC vec& operator op##=(vec<U, N> b) { return *this = *this op b; }
  MSL_SHIFT(<<) MSL_SHIFT(>>)
#undef MSL_SHIFT

private:
  template <int... I> MSL_INLINE vec(const volatile MSL_GENERIC vec& o, msl_indices<I...>) : storage(o.elements[I]...) {}
  template <int... I, class A> constexpr MSL_INLINE vec(msl_indices<I...>, A a) : storage(((void)I, a)...) {}
  template <class A, int... I>
  constexpr MSL_INLINE vec(A a, msl_indices<I...>) : storage(msl_convert<T>(msl_part<I>(a))...) {}
  template <int... I, class A, class B, class... C>
  constexpr MSL_INLINE vec(msl_indices<I...>, A a, B b, C... c) : storage(msl_flat_part<T, I>(a, b, c...)...) {}
};

// `uint4 v = {1, 2, 3}`
template <class V, class... A> constexpr MSL_INLINE V msl_filled_up(A... a) {
  typedef typename V::value_type T;
  constexpr int missing = msl_parts<V>::count - (msl_parts<A>::count + ...);
  if constexpr (missing == 2) return V(a..., (T)0, (T)0);
  else if constexpr (missing == 1) return V(a..., (T)0);
  else return V(a...);
}

template <class T, int N> struct msl_packed_storage;
template <class T> struct msl_packed_storage<T, 2> {
  union {
    T elements[2];
    struct { T x, y; };
    struct { T r, g; };
  };
};
template <class T> struct msl_packed_storage<T, 3> {
  union {
    T elements[3];
    struct { T x, y, z; };
    struct { T r, g, b; };
  };
};
template <class T> struct msl_packed_storage<T, 4> {
  union {
    T elements[4];
    struct { T x, y, z, w; };
    struct { T r, g, b, a; };
  };
};
template <class T, int N> struct packed_vec : msl_packed_storage<T, N> {
  packed_vec() = default;
  MSL_INLINE packed_vec(vec<T, N> v) {
    for (int i = 0; i < N; i++) this->elements[i] = v.elements[i];
  }
  template <class A, class B, class... C> MSL_INLINE packed_vec(A a, B b, C... c) : packed_vec(vec<T, N>(a, b, c...)) {}
  template <class U, enable_if_t<is_scalar<U>::value, int> = 0> MSL_INLINE packed_vec(U s) : packed_vec(vec<T, N>(s)) {}
  template <class U> MSL_INLINE explicit packed_vec(packed_vec<U, N> o) : packed_vec(vec<T, N>(o)) {}
  MSL_INLINE T& operator[](int i) { return this->elements[i]; }
  MSL_INLINE const T& operator[](int i) const { return this->elements[i]; }
  template <int... I> MSL_INLINE vec<T, sizeof...(I)> swizzle() const {
    return vec<T, sizeof...(I)>(this->elements[I]...);
  }
  template <int... I> MSL_INLINE msl_swizzle_reference<packed_vec, vec<T, sizeof...(I)>, I...> swizzle_reference() {
    return msl_swizzle_reference<packed_vec, vec<T, sizeof...(I)>, I...>{*this};
  }
  MSL_INLINE MSL_GENERIC packed_vec& operator+=(vec<T, N> o) { return *this = vec<T, N>(*this) + o; }
  MSL_INLINE MSL_GENERIC packed_vec& operator-=(vec<T, N> o) { return *this = vec<T, N>(*this) - o; }
  MSL_INLINE MSL_GENERIC packed_vec& operator*=(vec<T, N> o) { return *this = vec<T, N>(*this) * o; }
  MSL_INLINE MSL_GENERIC packed_vec& operator/=(vec<T, N> o) { return *this = vec<T, N>(*this) / o; }
#define MSL_PACKED_BINARY(op) \
  friend MSL_INLINE vec<T, N> operator op(packed_vec a, packed_vec b) { return vec<T, N>(a) op vec<T, N>(b); } \
  friend MSL_INLINE vec<T, N> operator op(packed_vec a, vec<T, N> b) { return vec<T, N>(a) op b; } \
  friend MSL_INLINE vec<T, N> operator op(vec<T, N> a, packed_vec b) { return a op vec<T, N>(b); } \
  friend MSL_INLINE vec<T, N> operator op(packed_vec a, T b) { return vec<T, N>(a) op b; } \
  friend MSL_INLINE vec<T, N> operator op(T a, packed_vec b) { return a op vec<T, N>(b); }
  MSL_PACKED_BINARY(+) MSL_PACKED_BINARY(-) MSL_PACKED_BINARY(*) MSL_PACKED_BINARY(/)
  MSL_PACKED_BINARY(%) MSL_PACKED_BINARY(&) MSL_PACKED_BINARY(|) MSL_PACKED_BINARY(^)
  MSL_PACKED_BINARY(<<) MSL_PACKED_BINARY(>>)
#undef MSL_PACKED_BINARY
};

#define MSL_VECTOR_NAMES(t) \
  typedef vec<t, 2> t##2; \
  typedef vec<t, 3> t##3; \
  typedef vec<t, 4> t##4;
MSL_EACH_SCALAR(MSL_VECTOR_NAMES) MSL_VECTOR_NAMES(bool)
#undef MSL_VECTOR_NAMES
#define MSL_PACKED_NAMES(t) \
  typedef packed_vec<t, 2> packed_##t##2; \
  typedef packed_vec<t, 3> packed_##t##3; \
  typedef packed_vec<t, 4> packed_##t##4;
MSL_EACH_SCALAR(MSL_PACKED_NAMES)
#undef MSL_PACKED_NAMES
template <class T> struct vec_elements { MSL_STATIC_CONSTEXPR int value = msl_parts<T>::count; };

template <class R, class A> constexpr MSL_INLINE R as_type(A a) {
  static_assert(sizeof(R) == sizeof(A), "as_type: the sizes of the two types differ");
  return __builtin_bit_cast(R, a);
}

// ---- matrices: C columns of R rows
template <class T, int C, int R> struct matrix {
  vec<T, R> columns[C];
  matrix() = default;
  MSL_INLINE explicit matrix(T diagonal) {
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++) columns[c][r] = c == r ? diagonal : (T)0;
  }
  template <class... V, enable_if_t<sizeof...(V) + 2 == C, int> = 0>
  MSL_INLINE matrix(vec<T, R> a, vec<T, R> b, V... more) : columns{a, b, vec<T, R>(more)...} {}
  template <class... S, enable_if_t<sizeof...(S) == C * R && (is_scalar<S>::value && ...), int> = 0>
  MSL_INLINE matrix(S... s) {
    const T elements[] = {msl_convert<T>(s)...};
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++) columns[c][r] = elements[c * R + r];
  }
  template <class U> MSL_INLINE explicit matrix(matrix<U, C, R> o) {
    for (int c = 0; c < C; c++) columns[c] = vec<T, R>(o.columns[c]);
  }
  MSL_INLINE vec<T, R>& operator[](int c) { return columns[c]; }
  MSL_INLINE const vec<T, R>& operator[](int c) const { return columns[c]; }
  MSL_INLINE MSL_GENERIC matrix& operator+=(matrix o) { return *this = *this + o; }
  MSL_INLINE MSL_GENERIC matrix& operator-=(matrix o) { return *this = *this - o; }
  MSL_INLINE MSL_GENERIC matrix& operator*=(T s) { return *this = *this * s; }
  MSL_INLINE MSL_GENERIC matrix& operator/=(T s) { return *this = *this / s; }
  friend MSL_INLINE matrix operator+(matrix a, matrix b) {
    for (int c = 0; c < C; c++) a.columns[c] += b.columns[c];
    return a;
  }
  friend MSL_INLINE matrix operator-(matrix a, matrix b) {
    for (int c = 0; c < C; c++) a.columns[c] -= b.columns[c];
    return a;
  }
  friend MSL_INLINE matrix operator*(matrix a, T s) {
    for (int c = 0; c < C; c++) a.columns[c] *= vec<T, R>(s);
    return a;
  }
  friend MSL_INLINE matrix operator*(T s, matrix a) { return a * s; }
  friend MSL_INLINE matrix operator/(matrix a, T s) {
    for (int c = 0; c < C; c++) a.columns[c] /= vec<T, R>(s);
    return a;
  }
  MSL_INLINE matrix operator-() const { return *this * (T)-1; }
  friend MSL_INLINE vec<T, R> operator*(matrix m, vec<T, C> v) {
    vec<T, R> r((T)0);
    for (int c = 0; c < C; c++) r += m.columns[c] * v[c];
    return r;
  }
  friend MSL_INLINE vec<T, C> operator*(vec<T, R> v, matrix m) {
    vec<T, C> r;
    for (int c = 0; c < C; c++) {
      T s = 0;
      for (int k = 0; k < R; k++) s += m.columns[c][k] * v[k];
      r[c] = s;
    }
    return r;
  }
};
template <class T, int C, int R, int K> MSL_INLINE matrix<T, K, R> operator*(matrix<T, C, R> a, matrix<T, K, C> b) {
  matrix<T, K, R> r;
  for (int k = 0; k < K; k++) r.columns[k] = a * b.columns[k];
  return r;
}
template <class T, int C, int R> MSL_INLINE matrix<T, R, C> transpose(matrix<T, C, R> m) {
  matrix<T, R, C> r;
  for (int c = 0; c < C; c++)
    for (int k = 0; k < R; k++) r.columns[k][c] = m.columns[c][k];
  return r;
}
template <class T> MSL_INLINE T determinant(matrix<T, 2, 2> m) { return m[0][0] * m[1][1] - m[1][0] * m[0][1]; }
template <class T> MSL_INLINE T determinant(matrix<T, 3, 3> m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[2][1] * m[1][2]) - m[1][0] * (m[0][1] * m[2][2] - m[2][1] * m[0][2]) +
      m[2][0] * (m[0][1] * m[1][2] - m[1][1] * m[0][2]);
}
// Along the first column.
template <class T> MSL_INLINE T determinant(matrix<T, 4, 4> m) {
  T sum = 0;
  for (int k = 0; k < 4; k++) {
    matrix<T, 3, 3> minor;
    for (int c = 0; c < 3; c++)
      for (int r = 0; r < 3; r++) minor[c][r] = m[c + 1][r < k ? r : r + 1];
    sum += (k % 2 ? -m[0][k] : m[0][k]) * determinant(minor);
  }
  return sum;
}
#define MSL_MATRIX_NAMES(t) \
  typedef matrix<t, 2, 2> t##2x2; \
  typedef matrix<t, 2, 3> t##2x3; \
  typedef matrix<t, 2, 4> t##2x4; \
  typedef matrix<t, 3, 2> t##3x2; \
  typedef matrix<t, 3, 3> t##3x3; \
  typedef matrix<t, 3, 4> t##3x4; \
  typedef matrix<t, 4, 2> t##4x2; \
  typedef matrix<t, 4, 3> t##4x3; \
  typedef matrix<t, 4, 4> t##4x4;
MSL_MATRIX_NAMES(float) MSL_MATRIX_NAMES(half)
#undef MSL_MATRIX_NAMES

// ---- array
template <class T, size_t N> struct array {
  T elements[N];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return N; }
  constexpr T* data() { return elements; }
  constexpr const T* data() const { return elements; }
  constexpr T* begin() { return elements; }
  constexpr T* end() { return elements + N; }
  constexpr const T* begin() const { return elements; }
  constexpr const T* end() const { return elements + N; }
  constexpr void fill(T v) {
    for (size_t i = 0; i < N; i++) elements[i] = v;
  }
};
} // namespace metal
