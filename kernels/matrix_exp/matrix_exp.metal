#include "shared/field.metal"
#include "shared/strided.metal"

// out[i, e] += the sum over j of c[i, j] * x[j, e]; sizes: rows of c, columns of c, elements of a row of x. S is what is
// summed in.
template <typename T, typename S> struct product_in {
  static S of(T a, T b) { return S(a) * S(b); }
};
template <> struct product_in<float2, float2> {
  static float2 of(float2 a, float2 b) { return times(a, b); }
};
template <> struct product_in<bool, int> {
  static int of(bool a, bool b) { return a && b ? 1 : 0; }
};

template <typename T, typename S> inline T narrowed(S sum) { return T(sum); }
template <> inline bool narrowed<bool, int>(int sum) { return sum != 0; }

template <typename T, typename S>
kernel void linear_combination(
    device T* out [[buffer(0)]],
    device const T* x [[buffer(1)]],
    device const T* coefficients [[buffer(2)]],
    constant ulong* sizes [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= sizes[0] * sizes[2]) {
    return;
  }
  const ulong row = i / sizes[2], e = i - row * sizes[2];
  S sum = S(out[i]);
  for (ulong j = 0; j < sizes[1]; ++j) {
    sum += product_in<T, S>::of(coefficients[row * sizes[1] + j], x[j * sizes[2] + e]);
  }
  out[i] = narrowed<T, S>(sum);
}

// Squares small matrices in place, each as often as it says: a group of 256 threads a matrix, which stays in threadgroup
// memory from the first square to the last.
constant constexpr int SMALL = 32;
constant constexpr int GROUP = 256;

template <typename T>
kernel void square_small(
    device T* matrices [[buffer(0)]],
    device const int* times_of [[buffer(1)]],
    constant int& n [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]]) {
  threadgroup T x[SMALL * SMALL];
  device T* matrix = matrices + ulong(group.y) * ulong(n * n);
  const int thread_index = int(in_group.x), squares = times_of[group.y];
  for (int e = thread_index; e < n * n; e += GROUP) {
    x[e] = matrix[e];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int round = 0; round < squares; ++round) {
    T mine[SMALL * SMALL / GROUP];
    for (int e = thread_index, m = 0; e < n * n; e += GROUP, ++m) {
      const int row = e / n, column = e - row * n;
      T sum = number<T>(0.0f);
      for (int k = 0; k < n; ++k) {
        sum += times(x[row * n + k], x[k * n + column]);
      }
      mine[m] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int e = thread_index, m = 0; e < n * n; e += GROUP, ++m) {
      x[e] = mine[m];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int e = thread_index; e < n * n; e += GROUP) {
    matrix[e] = x[e];
  }
}

// Squares those matrices that want more than `done` squares, from one buffer into the other; 16 by 16 threads make a tile
// of 32 by 32. Groups of matrices that are through read one number and leave.
constant constexpr int TILE = 32;
constant constexpr int SIDE = 16;
constant constexpr int EACH = TILE / SIDE;

template <typename T>
kernel void square_once(
    device T* out [[buffer(0)]],
    device const T* x [[buffer(1)]],
    device const int* times_of [[buffer(2)]],
    constant int* shape [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 in_group [[thread_position_in_threadgroup]]) {
  threadgroup T left[TILE][SIDE];
  threadgroup T right[SIDE][TILE];
  const int n = shape[0], done = shape[1];
  if (times_of[group.z] <= done) {
    return;
  }
  const ulong start = ulong(group.z) * ulong(n) * ulong(n);
  const int first_row = int(group.y) * TILE, first_column = int(group.x) * TILE;
  const int thread_index = int(in_group.y) * SIDE + int(in_group.x);
  T sums[EACH][EACH];
  for (int i = 0; i < EACH * EACH; ++i) {
    sums[i / EACH][i % EACH] = number<T>(0.0f);
  }
  for (int middle = 0; middle < n; middle += SIDE) {
    for (int e = thread_index; e < TILE * SIDE; e += SIDE * SIDE) {
      const int r = e / SIDE, k = e % SIDE, depth = e / TILE, c = e % TILE;
      const bool inside = first_row + r < n && middle + k < n;
      left[r][k] = inside ? x[start + ulong(first_row + r) * ulong(n) + ulong(middle + k)] : number<T>(0.0f);
      const bool is_inside = middle + depth < n && first_column + c < n;
      right[depth][c] =
          is_inside ? x[start + ulong(middle + depth) * ulong(n) + ulong(first_column + c)] : number<T>(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < SIDE; ++k) {
      for (int i = 0; i < EACH; ++i) {
        for (int j = 0; j < EACH; ++j) {
          sums[i][j] += times(left[int(in_group.y) + i * SIDE][k], right[k][int(in_group.x) + j * SIDE]);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const int row = first_row + int(in_group.y) + i * SIDE, column = first_column + int(in_group.x) + j * SIDE;
      if (row < n && column < n) {
        out[start + ulong(row) * ulong(n) + ulong(column)] = sums[i][j];
      }
    }
  }
}

#define COMBINATION(T, S) \
  template [[host_name("linear_combination_" #T)]] kernel void linear_combination<T, S>( \
      device T*, device const T*, device const T*, constant ulong*, uint2, uint2);

COMBINATION(float, float)
COMBINATION(half, float)
COMBINATION(bfloat, float)
COMBINATION(float2, float2)
COMBINATION(long, long)
COMBINATION(int, int)
COMBINATION(short, int)
COMBINATION(char, int)
COMBINATION(uchar, int)
COMBINATION(bool, int)

#define SQUARES(T) \
  template [[host_name("square_small_" #T)]] kernel void square_small<T>( \
      device T*, device const int*, constant int&, uint2, uint2); \
  template [[host_name("square_once_" #T)]] kernel void square_once<T>( \
      device T*, device const T*, device const int*, constant int*, uint3, uint3);

SQUARES(float)
SQUARES(float2)
