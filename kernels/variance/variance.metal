#include "shared/field.metal"
#include "shared/reduce.metal"
#include "shared/strided.metal"

// What is known of some elements: how many, their mean, and the sum of the squared distances from it. One pass
// (B. P. Welford, Technometrics 4, 1962), and two such are put together without cancellation (T. F. Chan, G. H. Golub and
// R. J. LeVeque, The American Statistician 37, 1983).
inline float squared(float a) { return a * a; }
inline float squared(float2 a) { return a.x * a.x + a.y * a.y; }

template <typename F> struct moments {
  F mean;
  float squares;
  float count;

  void add(F x) {
    count += 1.0f;
    const F off = x - mean;
    mean += off / count;
    squares += squared(off) * ((count - 1.0f) / count);
  }
};

// Of four elements: with one division by a number that is not known, where elements one by one take eight.
template <typename F> inline moments<F> of_four(F a, F b, F c, F d) {
  const F mean = (a * 0.25f + b * 0.25f) + (c * 0.25f + d * 0.25f);  // no sum goes beyond the largest float
  return {mean, (squared(a - mean) + squared(b - mean)) + (squared(c - mean) + squared(d - mean)), 4.0f};
}

struct together {
  template <typename F> static moments<F> combine(moments<F> a, moments<F> b) {
    const float count = a.count + b.count;
    if (b.count == 0.0f || a.count == 0.0f) {
      return b.count == 0.0f ? a : b;
    }
    const F off = b.mean - a.mean;
    const float share = b.count / count;
    return {a.mean + off * share, a.squares + b.squares + squared(off) * (a.count * share), count};
  }
};

inline float widened(float x) { return x; }
inline float widened(half x) { return float(x); }
inline float widened(bfloat x) { return float(x); }
inline float2 widened(float2 x) { return x; }

// The variance of a row, or its root; where nothing is left of the degrees of freedom, over zero.
template <typename F> inline float spread(moments<F> row, float correction, bool root) {
  const float variance = row.squares / max(0.0f, row.count - correction);
  return root ? precise::sqrt(variance) : variance;
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
  threadgroup moments<F> scratch[256];
  const ulong first = offsets<1, ulong>(rows, ulong(group.y)).at[0];
  moments<F> row = {F(0.0f), 0.0f, 0.0f};
  const ulong count = columns[0], step = ulong(groups.x) * group_size.x;
  ulong e = ulong(group.x) * group_size.x + in_group.x;
  for (; e + 3 * step < count; e += 4 * step) {
    T four[4];
    for (uint k = 0; k < 4; ++k) {
      four[k] = x[first + offsets<1, ulong>(columns, e + k * step).at[0]];
    }
    row = together::combine(row, of_four(widened(four[0]), widened(four[1]), widened(four[2]), widened(four[3])));
  }
  for (; e < count; e += step) {
    row.add(widened(x[first + offsets<1, ulong>(columns, e).at[0]]));
  }
  row = reduce_group<together>(row, scratch, in_group.x, group_size.x);
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
  threadgroup moments<F> scratch[256];
  moments<F> row = {F(0.0f), 0.0f, 0.0f};
  for (uint s = in_group.x; s < shares; s += group_size.x) {
    row = together::combine(row, moments<F>(partial[ulong(group.y) * shares + s]));
  }
  row = reduce_group<together>(row, scratch, in_group.x, group_size.x);
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
