#include "shared/field.metal"
#include "shared/row.metal"

// Moments of some elements, which are multiples of a power of two, 2^(power - 127): their number, their mean as the sum of
// two floats, and the sum of the squared distances from it. With the power no square leaves the range of a float, with
// two floats the mean of elements far from zero keeps the digits of their distances. One pass (B. P. Welford,
// Technometrics 4, 1962); two of them are combined without cancellation (T. F. Chan, G. H. Golub and R. J. LeVeque, The
// American Statistician 37, 1983).
inline float squared(float a) { return a * a; }
inline float squared(float2 a) { return a.x * a.x + a.y * a.y; }
inline float largest_part(float a) { return abs(a); }
inline float largest_part(float2 a) { return max(abs(a.x), abs(a.y)); }

// 2^(exponent - 127); zero for exponents that a normal float does not have.
inline float power_of_two(int exponent) { return as_type<float>(uint(max(exponent, 0)) << 23); }

// The power for elements of this size: elements of 1 to 2^32 times it. Many elements share it.
inline int power_for(float largest) { return max(int(as_type<uint>(largest) >> 23) & 0xe0, 1); }

template <typename F> struct moments {
  F mean;
  F rest;  // what the float of the mean leaves of it
  float squares;
  float count;
  int power;

  void scale_to(int other) {
    const float factor = power_of_two(127 + power - other);
    mean *= factor;
    rest *= factor;
    squares = squares * factor * factor;
    power = other;
  }
};

template <typename F> inline moments<F> of_none() { return {F(0.0f), F(0.0f), 0.0f, 0.0f, 1}; }

template <typename F> inline moments<F> of_one(F x) {
  const float size = largest_part(x);
  const int power = power_for(size);
  return {x * power_of_two(254 - power), F(0.0f), isfinite(size) ? 0.0f : NAN, 1.0f, power};
}

// Of elements in registers: with one division by a number that is not known, where elements one by one take two each.
template <typename F> inline moments<F> of_several(thread F (&x)[ROW_LOADS]) {
  constexpr float SHARE = 1.0f / ROW_LOADS;
  float largest = 0.0f;
  for (uint k = 0; k < ROW_LOADS; ++k) {
    largest = max(largest, largest_part(x[k]));
  }
  const int power = power_for(largest);
  const float factor = power_of_two(254 - power);
  F mean = F(0.0f);
  for (uint k = 0; k < ROW_LOADS; ++k) {
    x[k] *= factor;
    mean += x[k] * SHARE;
  }
  F rest = F(0.0f);
  for (uint k = 0; k < ROW_LOADS; ++k) {
    x[k] -= mean;
    rest += x[k] * SHARE;
  }
  float squares = 0.0f;
  for (uint k = 0; k < ROW_LOADS; ++k) {
    squares += squared(x[k] - rest);
  }
  return {mean, rest, squares, float(ROW_LOADS), power};
}

struct together {
  template <typename F> static moments<F> combine(moments<F> a, moments<F> b) {
    const float count = a.count + b.count;
    if (b.count == 0.0f || a.count == 0.0f) {
      return b.count == 0.0f ? a : b;
    }
    const int power = max(a.power, b.power);
    a.scale_to(power);
    b.scale_to(power);
    const F off = (b.mean - a.mean) + (b.rest - a.rest);
    const float share = b.count / count;
    const F step = off * share, mean = a.mean + step, added = mean - a.mean;
    // What the sum of the mean and the step rounds off (two-sum; Knuth, The Art of Computer Programming, 4.2.2).
    const F rest = (a.mean - (mean - added)) + (step - added) + a.rest;
    return {mean, rest, a.squares + b.squares + squared(off) * (a.count * share), count, power};
  }
};

inline float widened(float x) { return x; }
inline float widened(half x) { return float(x); }
inline float widened(bfloat x) { return float(x); }
inline float2 widened(float2 x) { return x; }

// What a thread knows of the elements that it takes.
template <typename F> struct moments_of_share {
  moments<F> row;

  template <typename T> void take(T x) { row = together::combine(row, of_one(widened(x))); }
  template <typename T> void take_several(thread const T (&x)[ROW_LOADS]) {
    F wide[ROW_LOADS];
    for (uint k = 0; k < ROW_LOADS; ++k) {
      wide[k] = widened(x[k]);
    }
    row = together::combine(row, of_several(wide));
  }
};

template <typename F> inline moments<F> of_lane_above(moments<F> m, ushort distance) {
  return {
      simd_shuffle_down(m.mean, distance), simd_shuffle_down(m.rest, distance), simd_shuffle_down(m.squares, distance),
      simd_shuffle_down(m.count, distance), simd_shuffle_down(m.power, distance)};
}

// All threads' moments together, in the first thread of a group of whole SIMD groups. These put theirs together without
// a barrier, so that the group waits once: a tree over threadgroup memory waits at each of eight levels.
template <typename F>
inline moments<F> moments_of_group(moments<F> value, threadgroup moments<F>* scratch, uint thread_index, uint threads) {
  constexpr uint SIMD_WIDTH = 32;
  for (ushort distance = SIMD_WIDTH / 2; distance > 0; distance /= 2) {
    value = together::combine(value, of_lane_above(value, distance));
  }
  if (thread_index % SIMD_WIDTH == 0) {
    scratch[thread_index / SIMD_WIDTH] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 1; thread_index == 0 && s < threads / SIMD_WIDTH; ++s) {
    value = together::combine(value, moments<F>(scratch[s]));
  }
  return value;
}

// The variance of a row, or its root; where nothing is left of the degrees of freedom, over zero. A root is finite where
// the variance is beyond the largest float.
template <typename F> inline float spread(moments<F> row, float correction, bool root) {
  const float variance = row.squares / max(0.0f, row.count - correction), factor = power_of_two(row.power);
  return root ? precise::sqrt(variance) * factor : variance * factor * factor;
}

// A row of groups a result; each of them keeps what the elements of its share make, or, where it is the only one, writes
// the result. rows: the layout of the first elements of all rows; columns: that of the elements of one row.
template <typename T, typename F>
kernel void variance_rows(
    device float* out [[buffer(0)]],
    device moments<F>* partial [[buffer(1)]],
    device const T* x [[buffer(2)]],
    constant ulong* rows [[buffer(3)]],
    constant ulong* columns [[buffer(4)]],
    constant float* correction [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup moments<F> scratch[8];
  device const T* elements = x + offsets<1, ulong>(rows, ulong(group.y)).at[0];
  moments_of_share<F> share = {of_none<F>()};
  const ulong first = ulong(group.x) * group_size.x + in_group.x;
  take_share(share, elements, columns, first, ulong(groups.x) * group_size.x);
  const moments<F> row = moments_of_group(share.row, scratch, in_group.x, group_size.x);
  if (in_group.x == 0 && groups.x == 1) {
    out[group.y] = spread(row, correction[0], correction[1] != 0.0f);
  } else if (in_group.x == 0) {
    partial[ulong(group.y) * groups.x + group.x] = row;
  }
}

// A group a result, over the shares of its row.
template <typename F>
kernel void variance_of_shares(
    device float* out [[buffer(0)]],
    device const moments<F>* partial [[buffer(1)]],
    constant uint& shares [[buffer(2)]],
    constant float* correction [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup moments<F> scratch[8];
  moments<F> row = of_none<F>();
  for (uint s = in_group.x; s < shares; s += group_size.x) {
    row = together::combine(row, moments<F>(partial[ulong(group.y) * shares + s]));
  }
  row = moments_of_group(row, scratch, in_group.x, group_size.x);
  if (in_group.x == 0) {
    out[group.y] = spread(row, correction[0], correction[1] != 0.0f);
  }
}

#define VARIANCE(T, F) \
  template [[host_name("variance_rows_" #T)]] kernel void variance_rows<T, F>( \
      device float*, device moments<F>*, device const T*, constant ulong*, constant ulong*, constant float*, uint2, \
      uint2, uint2, uint2);
#define SHARES(F) \
  template [[host_name("variance_of_shares_" #F)]] kernel void variance_of_shares<F>( \
      device float*, device const moments<F>*, constant uint&, constant float*, uint2, uint2, uint2);

VARIANCE(float, float)
VARIANCE(half, float)
VARIANCE(bfloat, float)
VARIANCE(float2, float2)
SHARES(float)
SHARES(float2)
