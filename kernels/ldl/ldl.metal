#include "shared/field.metal"
#include "shared/reduce.metal"

// The factorization of a symmetric or Hermitian matrix into L D L^T or L D L^H with the diagonal pivoting of Bunch and
// Kaufman (Mathematics of Computation 31, 1977), stored as LAPACK's ?sytrf and ?hetrf do for the lower triangle.

// (1 + sqrt(17)) / 8 bounds the growth of the elements.
constant float GROWTH = 0.6403882032f;
// LAPACK factorizes panels of so many columns as long as more remain, and looks for a NaN on the diagonal only behind them.
constant int PANEL = 64;

// The largest element of a column or row and where it is; the first of equal ones. A NaN is larger than all numbers.
struct peak {
  float value;
  int index;
};
struct highest {
  static peak combine(peak a, peak b) {
    const bool above = a.value > b.value || is_nan(a.value), below = b.value > a.value || is_nan(b.value);
    return above == below ? (a.index < b.index ? a : b) : (above ? a : b);
  }
};

template <typename T> struct column_major {
  device T* start;
  int n;

  device T& operator()(int i, int j) const { return start[ulong(j) * ulong(n) + ulong(i)]; }
};

// Which rows and columns come to step k, and whether the pivot is a block of two.
struct choice {
  int pivot;
  int block;
  bool singular;
};

template <typename T, bool HERMITIAN>
inline choice choose_pivot(
    thread const column_major<T>& a, int k, bool in_panel, threadgroup peak* scratch, uint thread_index, uint threads) {
  const int n = a.n;
  const float diagonal = HERMITIAN ? size_of(real_only(a(k, k))) : size_of(a(k, k));
  peak below = {0.0f, n};
  for (int i = k + 1 + int(thread_index); i < n; i += int(threads)) {
    below = highest::combine(below, peak{size_of(a(i, k)), i});
  }
  below = reduce_group<highest>(below, scratch, thread_index, threads);
  if (is_nan(diagonal) ? !in_panel || below.value == 0.0f : diagonal == 0.0f && below.value == 0.0f) {
    return choice{k, 1, true};
  }
  if (diagonal >= GROWTH * below.value) {
    return choice{k, 1, false};
  }
  const int row = below.index;
  peak across = {0.0f, n};
  for (int t = k + int(thread_index); t < n; t += int(threads)) {
    if (t != row) {
      across = highest::combine(across, peak{size_of(t < row ? a(row, t) : a(t, row)), t});
    }
  }
  across = reduce_group<highest>(across, scratch, thread_index, threads);
  if (diagonal >= GROWTH * below.value * (below.value / across.value)) {
    return choice{k, 1, false};
  }
  const float other = HERMITIAN ? size_of(real_only(a(row, row))) : size_of(a(row, row));
  return other >= GROWTH * across.value ? choice{row, 1, false} : choice{row, 2, false};
}

template <typename T> inline void exchange(device T& a, device T& b) {
  const T kept = a;
  a = b;
  b = kept;
}

// Exchanges rows and columns `from` and `to` of what is left of the matrix, of which the lower triangle is stored.
template <typename T, bool HERMITIAN>
inline void exchange_rows(thread const column_major<T>& a, int k, int from, int to, uint thread_index, uint threads) {
  for (int i = from + int(thread_index); i < a.n; i += int(threads)) {
    if (i > to) {
      exchange(a(i, from), a(i, to));
    } else if (i == to) {
      a(to, from) = HERMITIAN ? conjugate(a(to, from)) : a(to, from);
    } else if (i > from) {
      exchange(a(i, from), a(to, i));
      if (HERMITIAN) {
        a(i, from) = conjugate(a(i, from));
        a(to, i) = conjugate(a(to, i));
      }
    } else {
      exchange(a(from, from), a(to, to));
    }
  }
  if (from == k + 1 && thread_index == 0) {
    exchange(a(from, k), a(to, k));
  }
}

// A group a matrix: n steps one after another, each of them shared by all threads.
template <typename T, bool HERMITIAN>
kernel void ldl_factor(
    device T* matrices [[buffer(0)]],
    device int* pivots [[buffer(1)]],
    device int* infos [[buffer(2)]],
    constant int& n [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint matrix = group.y;
  const uint threads = group_size.x;
  threadgroup peak scratch[256];
  const column_major<T> a = {matrices + ulong(matrix) * ulong(n) * ulong(n), n};
  device int* pivot = pivots + ulong(matrix) * ulong(n);
  int info = 0, panel = 0;
  for (int k = 0; k < n;) {
    panel = panel < n - PANEL && k - panel >= PANEL - 1 ? k : panel;
    threadgroup_barrier(mem_flags::mem_device);
    const choice chosen = choose_pivot<T, HERMITIAN>(a, k, panel < n - PANEL, scratch, thread_index, threads);
    const int last = k + chosen.block - 1;  // the row that the pivot row is exchanged with
    threadgroup_barrier(mem_flags::mem_device);
    if (chosen.pivot != last) {
      exchange_rows<T, HERMITIAN>(a, k, last, chosen.pivot, thread_index, threads);
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (HERMITIAN && thread_index == 0) {
      a(k, k) = real_only(a(k, k));
      a(last, last) = real_only(a(last, last));
    }
    if (thread_index == 0) {
      pivot[k] = chosen.block == 1 ? chosen.pivot + 1 : -(chosen.pivot + 1);
      pivot[last] = pivot[k];
    }
    threadgroup_barrier(mem_flags::mem_device);
    const int next = last + 1, rest = n - next;
    if (chosen.singular) {
      info = info == 0 ? k + 1 : info;
    } else if (chosen.block == 1) {
      const T inverse = over(number<T>(1.0f), a(k, k));
      for (int e = int(thread_index); e < rest * rest; e += int(threads)) {
        const int i = next + e % rest, j = next + e / rest;
        if (i >= j) {
          const T w = times(inverse, a(j, k));
          a(i, j) -= times(a(i, k), HERMITIAN ? conjugate(w) : w);
          if (HERMITIAN && i == j) {
            a(i, j) = real_only(a(i, j));
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_device);
      for (int i = next + int(thread_index); i < n; i += int(threads)) {
        a(i, k) = times(inverse, a(i, k));
      }
    } else {
      // The inverse of the block, scaled by its off-diagonal element, which is its largest.
      const T corner = a(k + 1, k);
      const T scale = HERMITIAN ? number<T>(modulus(corner)) : corner;
      const T unit = over(corner, scale);
      const T d1 = over(a(k + 1, k + 1), scale), d2 = over(a(k, k), scale);
      const T factor = over(over(number<T>(1.0f), times(d1, d2) - number<T>(1.0f)), scale);
      for (int e = int(thread_index); e < rest * rest; e += int(threads)) {
        const int i = next + e % rest, j = next + e / rest;
        if (i >= j) {
          const T first = times(factor, times(d1, a(j, k)) - times(unit, a(j, k + 1)));
          const T second = times(factor, times(d2, a(j, k + 1)) - times(HERMITIAN ? conjugate(unit) : unit, a(j, k)));
          a(i, j) -= times(a(i, k), HERMITIAN ? conjugate(first) : first) +
              times(a(i, k + 1), HERMITIAN ? conjugate(second) : second);
          if (HERMITIAN && i == j) {
            a(i, j) = real_only(a(i, j));
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_device);
      for (int j = next + int(thread_index); j < n; j += int(threads)) {
        const T left = a(j, k), right = a(j, k + 1);
        a(j, k) = times(factor, times(d1, left) - times(unit, right));
        a(j, k + 1) = times(factor, times(d2, right) - times(HERMITIAN ? conjugate(unit) : unit, left));
      }
    }
    k = next;
  }
  if (thread_index == 0) {
    infos[matrix] = info;
  }
}

// A SIMD group a right-hand side, which it replaces by the solution. sizes: the rows, and how many belong to a matrix.
template <typename T, bool HERMITIAN>
kernel void ldl_solve(
    device T* sides [[buffer(0)]],
    device T* matrices [[buffer(1)]],
    device const int* pivots [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int n = int(sizes[0]);
  const uint side = group.y;
  const uint matrix = side / uint(sizes[1]);
  const column_major<T> a = {matrices + ulong(matrix) * ulong(n) * ulong(n), n};
  device const int* pivot = pivots + ulong(matrix) * ulong(n);
  device T* b = sides + ulong(side) * ulong(n);

  // Pivots that are none of this matrix would lead outside of it.
  bool are_inside = true;
  for (int i = int(lane); i < n; i += 32) {
    are_inside = are_inside && pivot[i] != 0 && pivot[i] >= -n && pivot[i] <= n;
  }
  if (!simd_all(are_inside)) {
    for (int i = int(lane); i < n; i += 32) {
      b[i] = number<T>(NAN);
    }
    return;
  }

  // What stands first in the order of the steps begins a block of two only where there is room for it.
  for (int k = 0; k < n;) {
    const int block = pivot[k] > 0 || k + 1 == n ? 1 : 2, last = k + block - 1;
    const int other = abs(pivot[k]) - 1;
    if (lane == 0 && other != last) {
      exchange(b[last], b[other]);
    }
    threadgroup_barrier(mem_flags::mem_device);
    const T first = b[k], second = b[last];
    for (int i = last + 1 + int(lane); i < n; i += 32) {
      b[i] -= times(a(i, k), first) + (block == 2 ? times(a(i, k + 1), second) : number<T>(0.0f));
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (lane == 0 && block == 1) {
      b[k] = over(first, a(k, k));
    } else if (lane == 0) {
      const T corner = a(k + 1, k);
      const T upper = HERMITIAN ? conjugate(corner) : corner;
      const T d1 = over(a(k, k), upper), d2 = over(a(k + 1, k + 1), corner);
      const T c1 = over(first, upper), c2 = over(second, corner);
      const T determinant = times(d1, d2) - number<T>(1.0f);
      b[k] = over(times(d2, c1) - c2, determinant);
      b[k + 1] = over(times(d1, c2) - c1, determinant);
    }
    threadgroup_barrier(mem_flags::mem_device);
    k = last + 1;
  }

  for (int k = n - 1; k >= 0;) {
    const int block = pivot[k] > 0 || k == 0 ? 1 : 2;
    T sum = number<T>(0.0f), sum_before = number<T>(0.0f);
    for (int i = k + 1 + int(lane); i < n; i += 32) {
      const T below = a(i, k);
      sum += times(HERMITIAN ? conjugate(below) : below, b[i]);
      if (block == 2) {
        const T before = a(i, k - 1);
        sum_before += times(HERMITIAN ? conjugate(before) : before, b[i]);
      }
    }
    sum = simd_total(sum);
    sum_before = simd_total(sum_before);
    threadgroup_barrier(mem_flags::mem_device);
    if (lane == 0) {
      b[k] -= sum;
      if (block == 2) {
        b[k - 1] -= sum_before;
      }
      const int other = abs(pivot[k]) - 1;
      if (other != k) {
        exchange(b[k], b[other]);
      }
    }
    threadgroup_barrier(mem_flags::mem_device);
    k -= block;
  }
}

#define LDL(NAME, T, HERMITIAN) \
  template [[host_name("ldl_factor_" #NAME)]] kernel void ldl_factor<T, HERMITIAN>( \
      device T*, device int*, device int*, constant int&, uint2, uint, uint2); \
  template [[host_name("ldl_solve_" #NAME)]] kernel void ldl_solve<T, HERMITIAN>( \
      device T*, device T*, device const int*, constant long*, uint2, uint);
LDL(float, float, false)
LDL(float2, float2, false)
LDL(float2_hermitian, float2, true)
