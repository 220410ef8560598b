// Jacobi's rotations of a Hermitian matrix in threadgroup memory, in the parallel order of a round robin: each round
// has disjoint pivot pairs of all rows (Golub and Van Loan, Matrix Computations, section 8.5).
#include "shared/field.metal"
#include "shared/reduce.metal"

// Two rows, or two blocks of rows, that are rotated against each other.
struct pivot_pair {
  int first;
  int second;
};

// The k-th of count / 2 pairs of a round; `count` is even, and each two of `count` are a pair once in count - 1 rounds.
inline pivot_pair pair_of(int k, int round, int count) {
  const int circle = count - 1;
  const int a = k == 0 ? circle : (round + k) % circle, b = (round + circle - k) % circle;
  return a < b ? pivot_pair{a, b} : pivot_pair{b, a};
}

// Columns p and q become p - (conj(sine) q + less p) and q + (sine p - less q): the cosine is 1 - less. A small rotation
// is exact to its own last bit this way (Rutishauser, Numerische Mathematik 9, 1966).
template <typename T> struct rotation {
  T sine;
  float less;
};

// What makes [[a, b], [conj(b), d]] diagonal, with the smaller one of the two angles: to a - moved and d + moved.
template <typename T> inline rotation<T> rotation_of(float a, float d, T b, thread float& moved) {
  const float size = modulus(b);
  const float slope = (d - a) / (2.0f * size);
  constexpr float STEEP = 0x1p30f; // above it the root is the slope, and its square may overflow
  const float root = abs(slope) > STEEP ? abs(slope) : precise::sqrt(fma(slope, slope, 1.0f));
  const float tangent = copysign(1.0f, slope) / (abs(slope) + root);
  const float cosine = 1.0f / precise::sqrt(fma(tangent, tangent, 1.0f)), sine = tangent * cosine;
  moved = tangent * size;
  return rotation<T>{b * (sine / size), sine * sine / (1.0f + cosine)};
}

template <typename T> inline void turn_columns(rotation<T> by, thread T& p, thread T& q) {
  const T old = p;
  p -= times(conjugate(by.sine), q) + by.less * old;
  q += times(by.sine, old) - by.less * q;
}

template <typename T> inline void turn_rows(rotation<T> by, thread T& p, thread T& q) {
  const T old = p;
  p -= times(by.sine, q) + by.less * old;
  q += times(conjugate(by.sine), old) - by.less * q;
}

template <typename T> inline bool turns(rotation<T> by) { return modulus(by.sine) != 0.0f; }

inline float real_of(float a) { return a; }
inline float real_of(float2 a) { return a.x; }

// Adds to a number that is the sum of two floats (two-sum; Knuth, The Art of Computer Programming, 4.2.2). An eigenvalue
// is moved once in each round, and the roundings of so many additions would be larger than all other errors.
inline void add_to(thread float& high, thread float& low, float x) {
  const float sum = high + x, added = sum - high;
  low += (high - (sum - added)) + (x - added);
  high = sum + low;
  low -= high - sum;
}

// Which elements are as good as zero: those that are small beside the whole matrix.
struct beside_norm {
  float smallest;

  bool matters(float size, float, float) const { return size > smallest; }
};

// At most so many sweeps: convergence is quadratic, ten are plenty for float32.
constant int MOST_SWEEPS = 30;

// Sweeps over a Hermitian matrix of an even number of rows until a sweep finds nothing to turn, at most `sweeps`. `a`
// becomes diagonal; the columns of the sum of the identity and `v` (`rows` of its rows are in use) are turned along: what
// small rotations change keeps all its digits. Both have rows of `stride` elements. `low` is what the diagonal's floats
// leave of it. `turned` has room for a rotation a pair. The whole group comes here. Returns whether anything was turned in
// the last sweep; `any` is set where something was turned in any sweep.
template <typename T, typename RULE>
inline bool diagonalize(
    threadgroup T* a,
    threadgroup T* v,
    threadgroup float* low,
    threadgroup rotation<T>* turned,
    threadgroup int* busy,
    int count,
    int rows,
    int stride,
    RULE rule,
    int sweeps,
    thread bool& any,
    uint thread_index,
    uint threads) {
  const int pairs = count / 2;
  const int tiles = pairs * (pairs - 1) / 2, strips = rows * pairs;
  bool more = false;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    if (thread_index == 0) {
      *busy = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int round = 0; round < count - 1; ++round) {
      for (int k = int(thread_index); k < pairs; k += int(threads)) {
        const pivot_pair at = pair_of(k, round, count);
        const int p = at.first * stride, q = at.second * stride;
        const T b = a[p + at.second];
        float first = real_of(a[p + at.first]), second = real_of(a[q + at.second]);
        rotation<T> by = {number<T>(0.0f), 0.0f};
        if (rule.matters(modulus(b), first, second)) {
          float moved, first_low = low[at.first], second_low = low[at.second];
          by = rotation_of(first, second, b, moved);
          add_to(first, first_low, -moved);
          add_to(second, second_low, moved);
          low[at.first] = first_low;
          low[at.second] = second_low;
          a[p + at.first] = number<T>(first);
          a[q + at.second] = number<T>(second);
          a[p + at.second] = number<T>(0.0f);
          a[q + at.first] = number<T>(0.0f);
          *busy = 1;
        }
        turned[k] = by;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int e = int(thread_index); e < tiles; e += int(threads)) {
        const int k = e % pairs, l = (k + 1 + e / pairs) % pairs;
        const rotation<T> left = turned[k], right = turned[l];
        if (turns(left) || turns(right)) {
          const pivot_pair of = pair_of(k, round, count), with = pair_of(l, round, count);
          const int p = of.first, q = of.second, r = with.first, s = with.second;
          T pr = a[p * stride + r], ps = a[p * stride + s], qr = a[q * stride + r], qs = a[q * stride + s];
          turn_columns(right, pr, ps);
          turn_columns(right, qr, qs);
          turn_rows(left, pr, qr);
          turn_rows(left, ps, qs);
          a[p * stride + r] = pr;
          a[p * stride + s] = ps;
          a[q * stride + r] = qr;
          a[q * stride + s] = qs;
          a[r * stride + p] = conjugate(pr);
          a[s * stride + p] = conjugate(ps);
          a[r * stride + q] = conjugate(qr);
          a[s * stride + q] = conjugate(qs);
        }
      }
      for (int e = int(thread_index); e < strips; e += int(threads)) {
        const int k = e % pairs, i = e / pairs;
        const rotation<T> by = turned[k];
        if (turns(by)) {
          const pivot_pair of = pair_of(k, round, count);
          const int p = i * stride + of.first, q = i * stride + of.second;
          const T left = v[p] + number<T>(i == of.first ? 1.0f : 0.0f);
          const T right = v[q] + number<T>(i == of.second ? 1.0f : 0.0f);
          v[p] -= times(conjugate(by.sine), right) + by.less * left;
          v[q] += times(by.sine, left) - by.less * right;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    more = *busy != 0;
    any = any || more;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!more) {
      break;
    }
  }
  return more;
}

// A power of two that brings numbers of this size near to 1.
inline float scale_for(float largest) {
  int exponent;
  frexp(largest, exponent);
  return largest > 0.0f ? exp2(float(-clamp(exponent, -126, 126))) : 1.0f;
}
