#include "shared/division.metal"
#include "shared/field.metal"
#include "shared/report.metal"

// Rows of a system that are solved at a time: a step reads all that is solved for each of them at once and waits twice,
// where rows one by one wait for memory in every row.
constant constexpr int BLOCK = 16;

// A triangular system for each vector of `x`, contiguous, solved in place; so many vectors in a row have one matrix.
// A group a vector: its threads share the sums over what is solved already, the lanes of the first SIMD group then solve
// the rows of a block, one a lane.
// sizes: vectors a matrix, the size n, the elements from one matrix to the next, from one row and from one column to the
// next, whether the matrix is upper triangular, whether its diagonal is taken for ones, whether it is conjugated, whether
// the vectors are the columns of the identity, which are zero up to where they are one, and the first vector of this
// launch.
kernel void solve_triangle(
    device float2* x [[buffer(0)]],
    device const float2* matrices [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float2 parts[8][BLOCK];  // of each SIMD group
  const long vectors = sizes[0], n = sizes[1];
  const bool upper = sizes[5] != 0, unit = sizes[6] != 0, conjugates = sizes[7] != 0;
  const long which = sizes[9] + long(group.y);
  device float2* solved = x + which * n;
  device const float2* matrix = matrices + quotient(which, vectors) * sizes[2];
  const int lane = int(thread_index % 32), simd_group = int(thread_index / 32);
  const int simd_groups = int(group_size.x / 32);
  const long own = which % n, skipped = sizes[8] == 0 ? 0 : upper ? n - 1 - own : own;
  for (long start = skipped / BLOCK * BLOCK; start < n; start += BLOCK) {
    const int rows = int(min(long(BLOCK), n - start));
    // Row r of the block, counted in the order in which they are solved.
    const long top = upper ? n - 1 - start : start, down = upper ? -1 : 1;
    const long first = upper ? top + 1 : skipped, end = upper ? n - skipped : start;
    float2 sums[BLOCK];
    for (int r = 0; r < BLOCK; ++r) {
      sums[r] = float2(0.0f);
    }
    for (long k = first + thread_index; k < end; k += group_size.x) {
      const float2 known = solved[k];
      device const float2* column = matrix + k * sizes[4];
      for (int r = 0; r < BLOCK; ++r) {
        const float2 a = column[(top + down * min(r, rows - 1)) * sizes[3]];
        sums[r] += times(conjugates ? conjugate(a) : a, known);
      }
    }
    for (int r = 0; r < BLOCK; ++r) {
      const float2 sum = simd_total(sums[r]);
      if (lane == 0) {
        parts[simd_group][r] = sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd_group == 0) {
      const long i = top + down * min(lane, rows - 1);
      device const float2* row = matrix + i * sizes[3];
      float2 rest = lane < rows ? solved[i] : float2(0.0f);
      for (int s = 0; s < simd_groups; ++s) {
        rest -= parts[s][min(lane, BLOCK - 1)];
      }
      const float2 diagonal = row[i * sizes[4]];
      const float2 pivot = conjugates ? conjugate(diagonal) : diagonal;
      for (int r = max(0, int(skipped - start)); r < rows; ++r) {
        if (lane == r && !unit) {
          rest = over(rest, pivot);
        }
        const float2 known = simd_broadcast(rest, ushort(r));
        if (lane > r && lane < rows) {
          const float2 a = row[(top + down * r) * sizes[4]];
          rest -= times(conjugates ? conjugate(a) : a, known);
        }
      }
      if (lane < rows) {
        solved[i] = rest;
      }
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  }
}

// The conjugate of X^H X for a lower triangular X, of X X^H for an upper one; the rows of `x` are the columns of X. What is
// zero because of the shape is not multiplied: beside an infinity it would be NaN. Groups of TILE x TILE threads.
constant constexpr int TILE = 16;
kernel void triangular_product(
    device float2* product [[buffer(0)]],
    device const float2* x [[buffer(1)]],
    constant int& n [[buffer(2)]],
    constant int& upper [[buffer(3)]],
    constant int& first [[buffer(4)]],
    uint3 position [[thread_position_in_grid]],
    uint3 place [[thread_position_in_threadgroup]]) {
  threadgroup float2 left[TILE][TILE + 1], right[TILE][TILE + 1];
  const ulong matrix = (ulong(first) + position.z) * ulong(n) * ulong(n);
  const int j = int(position.x), i = int(position.y), column = int(place.x), row = int(place.y);
  const int from = max(i, j), top = i - row, side = j - column;
  float2 sum = float2(0.0f);
  for (int start = max(top, side); start < n; start += TILE) {
    // Threads of neighbouring columns read neighbouring memory: along k, or along i and j.
    for (int which = 0; which < 2; ++which) {
      const int k = start + (upper != 0 ? row : column), line = (which == 0 ? top : side) + (upper != 0 ? column : row);
      const ulong at = upper != 0 ? ulong(k) * ulong(n) + ulong(line) : ulong(line) * ulong(n) + ulong(k);
      const float2 value = k < n && line < n ? x[matrix + at] : float2(0.0f);
      threadgroup float2& to =
          upper != 0 ? (which == 0 ? left : right)[column][row] : (which == 0 ? left : right)[row][column];
      to = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = max(0, from - start); k < min(TILE, n - start); ++k) {
      const float2 a = left[row][k], b = right[column][k];
      sum += upper != 0 ? times(conjugate(a), b) : times(a, conjugate(b));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i < n && j < n) {
    product[matrix + ulong(i) * ulong(n) + ulong(j)] = i == j ? float2(sum.x, 0.0f) : sum;
  }
}

// The exchanges of an LU factorization, of elements of vectors: in order, or in reverse, which undoes them.
// sizes: vectors a matrix, the size n, pivots a matrix, whether in reverse, the number of vectors.
kernel void exchange(
    device float2* x [[buffer(0)]],
    device const int* pivots [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    REPORT_BUFFER(3) uint i [[thread_position_in_grid]]) {
  const long n = sizes[1], count = sizes[2];
  if (long(i) >= sizes[4]) {
    return;
  }
  device float2* vector = x + long(i) * n;
  device const int* own = pivots + quotient(long(i), sizes[0]) * count;
  for (long step = 0; step < count; ++step) {
    const long at = sizes[3] != 0 ? count - 1 - step : step;
    const long other = long(own[at]) - 1;
    if (other < 0 || other >= n) {
      REPORT("linalg.lu_solve: pivot ", own[at], " is out of range of a matrix of ", n, " rows");
      return;
    }
    const float2 kept = vector[at];
    vector[at] = vector[other];
    vector[other] = kept;
  }
}
