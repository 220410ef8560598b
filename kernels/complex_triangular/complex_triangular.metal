#include "shared/division.metal"
#include "shared/field.metal"
#include "shared/report.metal"

// A triangular system for each vector of `x`, contiguous, solved in place; so many vectors in a row have one matrix.
// A SIMD group a vector: its lanes share the sum over what is solved already.
// sizes: vectors a matrix, the size n, the elements from one matrix to the next, from one row and from one column to the
// next, whether the matrix is upper triangular, whether its diagonal is taken for ones, whether it is conjugated.
kernel void triangular_vectors(
    device float2* x [[buffer(0)]],
    device const float2* matrices [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]]) {
  const long vectors = sizes[0], n = sizes[1];
  const bool upper = sizes[5] != 0, unit = sizes[6] != 0, conjugates = sizes[7] != 0;
  device float2* solved = x + long(group.y) * n;
  device const float2* matrix = matrices + quotient(long(group.y), vectors) * sizes[2];
  const int lane = int(in_group.x);
  for (long step = 0; step < n; ++step) {
    const long i = upper ? n - 1 - step : step;
    const long first = upper ? i + 1 : 0, end = upper ? n : i;
    device const float2* row = matrix + i * sizes[3];
    float2 sum = float2(0.0f);
    for (long k = first + lane; k < end; k += 32) {
      const float2 a = row[k * sizes[4]];
      sum += times(conjugates ? conjugate(a) : a, solved[k]);
    }
    sum = simd_total(sum);
    if (lane == 0) {
      const float2 rest = solved[i] - sum, pivot = row[i * sizes[4]];
      solved[i] = unit ? rest : over(rest, conjugates ? conjugate(pivot) : pivot);
    }
    simdgroup_barrier(mem_flags::mem_device);
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
