#include "shared/field.metal"
#include "shared/reduce.metal"

// Eigenvalues of general matrices: Householder reflections to Hessenberg form, then the QR algorithm with Wilkinson's
// implicit shift (G. H. Golub and C. F. Van Loan, Matrix Computations, chapter 7), in complex numbers whatever the matrix
// was. A group a matrix; row-major, so that threads that each take a column read neighbouring memory.

constant float UNIT = 0x1p-23f;
// Nothing, beside a matrix whose largest element is about one, and its square, which is far from underflow.
constant float NOTHING = 1e-15f;
constant float NOTHING_SQUARED = 1e-30f;
// Sweeps for one eigenvalue; after each tenth the shift is an arbitrary one, which breaks a cycle.
constant int MOST_SWEEPS = 60;
constant int SWEEPS_BEFORE_ANOTHER_SHIFT = 10;
// A sum of equal numbers is off by a unit in the last place for each. So parts of this length are summed first.
constant int PARTIAL_SUM = 8;

struct largest {
  static int combine(int a, int b) { return max(a, b); }
};

struct matrix_of {
  device float2* start;
  int n;

  device float2& operator()(int i, int j) const { return start[ulong(i) * ulong(n) + ulong(j)]; }
};

inline float squared(float2 a) { return a.x * a.x + a.y * a.y; }

inline float2 complex_root(float2 a) {
  const float size = modulus(a);
  if (size == 0.0f) {
    return float2(0.0f, 0.0f);
  }
  const float large = precise::sqrt(0.5f * (size + abs(a.x)));
  const float small = a.y / (2.0f * large);
  return a.x >= 0.0f ? float2(large, small) : float2(abs(small), a.y < 0.0f ? -large : large);
}

// The sum of conj(a[i]) b[i], or of a[i] b[i], over the places from `begin` to `end`; those of b are `step` apart.
template <bool CONJUGATES>
inline float2 inner_product(device const float2* a, device const float2* b, int step, int begin, int end) {
  float2 sum = float2(0.0f, 0.0f);
  for (int start = begin; start < end; start += PARTIAL_SUM) {
    float2 part = float2(0.0f, 0.0f);
    for (int i = start; i < min(start + PARTIAL_SUM, end); ++i) {
      part += times(CONJUGATES ? conjugate(a[i]) : a[i], b[ulong(i) * ulong(step)]);
    }
    sum += part;
  }
  return sum;
}

// Reflects below the diagonal of each column in turn; `v` holds the reflector.
inline void to_hessenberg(
    matrix_of h, matrix_of q, device float2* v, threadgroup float* scratch, uint thread_index, uint threads) {
  const int n = h.n;
  for (int k = 0; k + 2 < n; ++k) {
    threadgroup_barrier(mem_flags::mem_device);
    float below = 0.0f;
    for (int i = k + 2 + int(thread_index); i < n; i += int(threads)) {
      below += squared(h(i, k));
    }
    below = sum_group(below, scratch, thread_index, threads);
    if (below <= NOTHING_SQUARED) {
      for (int i = k + 2 + int(thread_index); i < n; i += int(threads)) {
        h(i, k) = float2(0.0f, 0.0f);
      }
      continue;
    }
    const float2 head = h(k + 1, k);
    const float head_size = modulus(head), norm = precise::sqrt(below + squared(head));
    const float2 direction = head_size == 0.0f ? float2(1.0f, 0.0f) : head / head_size;
    const float2 first = head + direction * norm;
    const float factor = 2.0f / (below + squared(first));
    for (int i = k + 1 + int(thread_index); i < n; i += int(threads)) {
      v[i] = i == k + 1 ? first : float2(h(i, k));
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (int j = k + int(thread_index); j < n; j += int(threads)) {
      const float2 sum = inner_product<true>(v, &h(0, j), n, k + 1, n) * factor;
      for (int i = k + 1; i < n; ++i) {
        h(i, j) -= times(v[i], sum);
      }
    }
    threadgroup_barrier(mem_flags::mem_device);
    const int rows = q.start == nullptr ? n : 2 * n;
    for (int r = int(thread_index); r < rows; r += int(threads)) {
      device float2* row = r < n ? &h(r, 0) : &q(r - n, 0);
      const float2 sum = inner_product<false>(row, v, 1, k + 1, n) * factor;
      for (int j = k + 1; j < n; ++j) {
        row[j] -= times(sum, conjugate(v[j]));
      }
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (int i = k + 2 + int(thread_index); i < n; i += int(threads)) {
      h(i, k) = float2(0.0f, 0.0f);
    }
  }
  threadgroup_barrier(mem_flags::mem_device);
}

// The eigenvalue of the last block of two that is nearer to the last element.
inline float2 wilkinson_shift(matrix_of h, int last) {
  const float2 a = h(last - 1, last - 1), d = h(last, last);
  const float2 product = times(h(last - 1, last), h(last, last - 1));
  const float2 half_gap = 0.5f * (a - d);
  float2 root = complex_root(times(half_gap, half_gap) + product);
  if (half_gap.x * root.x + half_gap.y * root.y < 0.0f) {
    root = -root;
  }
  const float2 far = half_gap + root;
  return size_of(far) < NOTHING ? d : d - over(product, far);
}

// The rotation (c, s; -s*, c*), which makes (size, 0) of (x, y).
struct rotation {
  float2 c;
  float2 s;
};

inline rotation rotation_to(float2 x, float2 y, thread float& size) {
  const float largest = max(size_of(x), size_of(y));
  size = 0.0f;
  if (largest == 0.0f) {
    return {float2(1.0f, 0.0f), float2(0.0f, 0.0f)};
  }
  const float2 a = x / largest, b = y / largest;
  const float length = precise::sqrt(squared(a) + squared(b));
  size = length * largest;
  rotation found = {conjugate(a) / length, conjugate(b) / length};
  // Rounding leaves it a little too long or too short. Hundreds of them, one after another, would change all lengths.
  const float rest = fma(-found.c.x, found.c.x, fma(-found.c.y, found.c.y, 1.0f));
  const float excess = fma(-found.s.x, found.s.x, fma(-found.s.y, found.s.y, rest));
  found.c += (0.5f * excess) * found.c;
  found.s += (0.5f * excess) * found.s;
  return found;
}

inline float2 turned_upper(rotation by, float2 upper, float2 lower) { return times(by.c, upper) + times(by.s, lower); }
inline float2 turned_lower(rotation by, float2 upper, float2 lower) {
  return times(conjugate(by.c), lower) - times(conjugate(by.s), upper);
}

// The same for two neighbours in a row, which the rotation's conjugate transpose multiplies.
inline float2 turned_left(rotation by, float2 left, float2 right) {
  return times(conjugate(by.c), left) + times(conjugate(by.s), right);
}
inline float2 turned_right(rotation by, float2 left, float2 right) { return times(by.c, right) - times(by.s, left); }

// One QR step on rows and columns first to last, with an implicit shift. The rotations come one after another, each from
// what the one before left below the diagonal; every thread turns its own columns. Of what they do to rows only the two
// that the next rotation needs are turned at once. At the end every thread turns its own rows, by all of them.
inline void sweep(
    matrix_of h,
    matrix_of q,
    device float4* rotations,
    int first,
    int last,
    float2 shift,
    uint thread_index,
    uint threads) {
  const int n = h.n;
  const bool whole = q.start != nullptr;
  const int end = whole ? n : last + 1;
  rotation before = {float2(1.0f, 0.0f), float2(0.0f, 0.0f)};
  for (int k = first; k < last; ++k) {
    float2 upper = h(k, k), lower = h(k + 1, k), x = upper - shift, y = lower;
    if (k > first) {
      const float2 left = h(k, k - 1);
      x = turned_left(before, left, upper);
      y = times(conjugate(before.s), lower);
      upper = turned_right(before, left, upper);
      lower = times(before.c, lower);
    }
    float size;
    const rotation by = rotation_to(x, y, size);
    threadgroup_barrier(mem_flags::mem_device);
    for (int j = k + 1 + int(thread_index); j < end; j += int(threads)) {
      const float2 above = h(k, j), below = h(k + 1, j);
      h(k, j) = turned_upper(by, above, below);
      h(k + 1, j) = turned_lower(by, above, below);
    }
    if (thread_index == 0) {
      if (k > first) {
        h(k, k - 1) = float2(size, 0.0f);
      }
      h(k, k) = turned_upper(by, upper, lower);
      h(k + 1, k) = turned_lower(by, upper, lower);
      rotations[k] = float4(by.c, by.s);
    }
    before = by;
    threadgroup_barrier(mem_flags::mem_device);
  }
  const int begin = whole ? 0 : first, rows = whole ? last + 1 + n : last + 1;
  for (int r = begin + int(thread_index); r < rows; r += int(threads)) {
    const bool of_h = r <= last;
    device float2* row = of_h ? &h(r, 0) : &q(r - last - 1, 0);
    for (int k = of_h ? max(first, min(r, last - 1)) : first; k < last; ++k) {
      const rotation by = {rotations[k].xy, rotations[k].zw};
      const float2 left = row[k], right = row[k + 1];
      row[k] = turned_left(by, left, right);
      row[k + 1] = turned_right(by, left, right);
    }
  }
  threadgroup_barrier(mem_flags::mem_device);
}

// Whether the element left of the diagonal in row k is as good as zero: beside its neighbours, and in what it changes of
// the eigenvalues of the block of two (M. Ahues and F. Tisseur, LAPACK Working Note 122, 1997).
inline bool is_negligible(matrix_of h, int k, float norm) {
  const float left = size_of(h(k, k - 1)), above = size_of(h(k - 1, k));
  const float2 upper = h(k - 1, k - 1), lower = h(k, k);
  if (left <= NOTHING * norm) {
    return true;
  }
  float around = size_of(upper) + size_of(lower);
  around = around == 0.0f ? norm : around;
  if (left > UNIT * around) {
    return false;
  }
  const float larger = max(left, above), smaller = min(left, above);
  const float gap = size_of(upper - lower), own = size_of(lower);
  const float wide = max(own, gap), narrow = min(own, gap), total = wide + larger;
  if (smaller * (larger / total) <= max(NOTHING * norm, UNIT * (narrow * (wide / total)))) {
    return true;
  }
  // Of equal elements it moves the eigenvalues by less than rounding: no shift would tell them apart.
  return precise::sqrt(smaller) * precise::sqrt(larger) <= 0.5f * UNIT * min(own, size_of(upper));
}

// The first row of the block that ends in `last` and hangs together.
inline int first_of_block(
    matrix_of h, int last, float norm, threadgroup int* scratch, uint thread_index, uint threads) {
  int found = 0;
  for (int k = 1 + int(thread_index); k <= last; k += int(threads)) {
    found = is_negligible(h, k, norm) ? k : found;
  }
  return reduce_group<largest>(found, scratch, thread_index, threads);
}

// The shift of a block's next sweep, of which there were `sweeps` already.
inline float2 shift_of(matrix_of h, int first, int last, int sweeps) {
  if (sweeps % SWEEPS_BEFORE_ANOTHER_SHIFT != 0 || sweeps == 0) {
    return wilkinson_shift(h, last);
  }
  const int row = sweeps / SWEEPS_BEFORE_ANOTHER_SHIFT % 2 == 1 ? first + 1 : last;
  const int corner = row == last ? last : first;
  return h(corner, corner) + float2(0.75f * size_of(h(row, row - 1)), 0.0f);
}

constant int NOT_FINITE = -1;
constant int NOT_CONVERGED = 1;

// The Schur form: `h` becomes upper triangular. With `q`, of which the caller has made the identity, all of it, and q times
// h times the conjugate transpose of q is the matrix as it was; without, its diagonal alone is meant. `infos` has zero for
// each matrix, or why it has no Schur form.
kernel void schur(
    device float2* matrices [[buffer(0)]],
    device float2* vectors [[buffer(1)]],
    device float2* reflectors [[buffer(2)]],
    device float4* rotations [[buffer(3)]],
    device int* infos [[buffer(4)]],
    constant int* shape [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  threadgroup int places[256];
  const int n = shape[0];
  const uint thread_index = in_group.x, threads = group_size.x;
  const ulong start = ulong(group.y) * ulong(n) * ulong(n), line = ulong(group.y) * ulong(n);
  const matrix_of h = {matrices + start, n};
  const matrix_of q = {shape[1] != 0 ? vectors + start : nullptr, n};
  float total = 0.0f;
  for (int e = int(thread_index); e < n * n; e += int(threads)) {
    total += squared(h.start[e]);
  }
  total = sum_group(total, scratch, thread_index, threads);
  if (!isfinite(total)) {
    if (thread_index == 0) {
      infos[group.y] = NOT_FINITE;
    }
    return;
  }
  const float norm = precise::sqrt(total);
  to_hessenberg(h, q, reflectors + line, scratch, thread_index, threads);
  int last = n - 1, sweeps = 0;
  while (last > 0 && sweeps < MOST_SWEEPS) {
    const int first = first_of_block(h, last, norm, places, thread_index, threads);
    if (first == last) {
      --last;
      sweeps = 0;
      continue;
    }
    const float2 shift = shift_of(h, first, last, sweeps++);
    threadgroup_barrier(mem_flags::mem_device);
    sweep(h, q, rotations + line, first, last, shift, thread_index, threads);
  }
  if (thread_index == 0) {
    infos[group.y] = last > 0 ? NOT_CONVERGED : 0;
  }
}

// Vectors of upper triangular matrices, a thread a value of `values`; where two values agree the vectors nearly do.
// `columns` has the diagonal element that the value belongs to, and where its vector goes. A value that is that element
// has the vector that solves (T - value) x = 0. One that lost an imaginary part is not an exact eigenvalue of T: its vector
// is that of two steps of inverse iteration (I. C. F. Ipsen, SIAM Review 39, 1997), which finds the one with the least
// residual. After the first step the residual may still be the root of n times as large.
kernel void triangular_vectors(
    device float2* out [[buffer(0)]],
    device const float2* matrices [[buffer(1)]],
    device const float2* values [[buffer(2)]],
    device const int* columns [[buffer(3)]],
    constant int& n [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
  const int place = int(position.x);
  const ulong line = ulong(position.y) * ulong(n), start = line * ulong(n);
  if (place >= n || columns[line + ulong(place)] < 0) {
    return;
  }
  const int i = columns[line + ulong(place)];
  device float2* x = out + start + ulong(i);
  device const float2* t = matrices + start;
  const float2 value = values[line + ulong(place)];
  const float2 own = t[ulong(i) * ulong(n) + ulong(i)];
  const bool is_exact = value.x == own.x && value.y == own.y;
  float largest_diagonal = 0.0f;
  for (int k = 0; k < n; ++k) {
    largest_diagonal = max(largest_diagonal, size_of(t[ulong(k) * ulong(n) + ulong(k)]));
  }
  const int last = is_exact ? i : n - 1;
  for (int k = n - 1; k > last; --k) {
    x[ulong(k) * ulong(n)] = float2(0.0f, 0.0f);
  }
  float side = 1.0f;
  for (int step = is_exact ? 1 : 0; step < 2; ++step) {
    for (int k = last; k >= 0; --k) {
      device const float2* row = t + ulong(k) * ulong(n);
      float2 sum = float2(0.0f, 0.0f);
      float size = 0.0f;
      for (int j = k + 1; j <= last; ++j) {
        sum += times(row[j], x[ulong(j) * ulong(n)]);
        size = max(size, size_of(row[j]));
      }
      if (!is_exact && step == 0) {
        // The right side has the phase with which the vector grows most, as in LINPACK's estimate of a condition.
        sum += any(sum != float2(0.0f, 0.0f)) ? sum * (side / modulus(sum)) : float2(side, 0.0f);
      } else if (!is_exact) {
        sum += side * x[ulong(k) * ulong(n)];
      }
      float2 gap = value - row[k];
      const float least = max(UNIT * max(largest_diagonal, size), 1e-30f);
      gap = size_of(gap) < least ? float2(least, 0.0f) : gap;
      float2 found = is_exact && k == i ? float2(1.0f, 0.0f) : over(sum, gap);
      const float found_size = size_of(found);
      if (found_size > 1e10f) {
        for (int j = k + 1; j <= last; ++j) {
          x[ulong(j) * ulong(n)] /= found_size;
        }
        found /= found_size;
        side /= found_size;
      }
      x[ulong(k) * ulong(n)] = found;
    }
    float peak = 0.0f;
    for (int k = 0; k <= last; ++k) {
      peak = max(peak, size_of(x[ulong(k) * ulong(n)]));
    }
    side = 1.0f / peak;
  }
}

struct nearest {
  float distance;
  int index;
};
struct nearer {
  static nearest better(nearest a, nearest b) { return b.distance < a.distance ? b : a; }
};

// The order of a matrix's eigenvalues. Those of a real one come as LAPACK promises it: both of a conjugate pair beside
// each other, the one above the real axis first, and exactly conjugate where rounding alone tells them apart. A value is
// real if its imaginary part may be rounding, and no other value is nearer to its conjugate than itself. A group a matrix.
// `columns` has for each place the column of its vector, or -1 minus the column whose conjugate it is; `mates` room for
// two numbers a value. shape: n, whether the matrices were real.
kernel void order_values(
    device float2* ordered [[buffer(0)]],
    device int* columns [[buffer(1)]],
    device const float2* values [[buffer(2)]],
    device int* mates [[buffer(3)]],
    device const float* tolerances [[buffer(4)]],
    constant int* shape [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup int places[256];
  const int n = shape[0];
  const uint thread_index = in_group.x, threads = group_size.x;
  const ulong line = ulong(group.y) * ulong(n);
  device const float2* value = values + line;
  device int* mate = mates + 2 * line;
  device int* choice = mate + n;
  const float tolerance = tolerances[group.y];
  for (int i = int(thread_index); i < n; i += int(threads)) {
    mate[i] = shape[1] != 0 && value[i].y != 0.0f ? -1 : i;
    choice[i] = -1;
  }
  // Two values that are nearest to each other's conjugate are a pair. The nearest two of all are always such values.
  for (int found = 1; found != 0;) {
    threadgroup_barrier(mem_flags::mem_device);
    for (int i = int(thread_index); i < n; i += int(threads)) {
      if (mate[i] >= 0) {
        continue;
      }
      const float height = abs(value[i].y);
      nearest best = height <= tolerance ? nearest{2.0f * height, i} : nearest{INFINITY, -1};
      for (int j = 0; j < n; ++j) {
        if (mate[j] < 0 && value[j].y * value[i].y < 0.0f) {
          best = nearer::better(best, nearest{size_of(value[i] - conjugate(value[j])), j});
        }
      }
      choice[i] = best.index;
    }
    threadgroup_barrier(mem_flags::mem_device);
    found = 0;
    for (int i = int(thread_index); i < n; i += int(threads)) {
      if (mate[i] < 0 && choice[i] >= 0 && choice[choice[i]] == i) {
        mate[i] = choice[i];
        found = 1;
      }
    }
    found = reduce_group<largest>(found, places, thread_index, threads);
  }
  for (int i = int(thread_index); i < n; i += int(threads)) {
    const float2 own = value[i];
    const int other = mate[i];
    const bool is_real = shape[1] != 0 && other == i;
    const bool is_paired = other >= 0 && other != i;
    int place = 0;
    for (int k = 0; k < (is_paired && own.y < 0.0f ? other : i); ++k) {
      const bool pairs = mate[k] >= 0 && mate[k] != k;
      place += !pairs ? 1 : value[k].y > 0.0f ? 2 : 0;
    }
    if (is_paired && own.y < 0.0f) {
      const float2 first = value[other];
      const bool is_conjugate = size_of(first - conjugate(own)) <= tolerance;
      ordered[line + ulong(place + 1)] = is_conjugate ? conjugate(first) : own;
      columns[line + ulong(place + 1)] = is_conjugate ? -1 - other : i;
    } else {
      ordered[line + ulong(place)] = is_real ? float2(own.x, 0.0f) : own;
      columns[line + ulong(place)] = i;
    }
  }
}

// Vectors of length one whose largest element is real, as LAPACK makes them, in the order of `order_values`. Of a real
// matrix those of real eigenvalues are real. shape: n, whether the matrices were real.
kernel void unit_vectors(
    device float2* vectors [[buffer(0)]],
    device const float2* found [[buffer(1)]],
    device const float2* values [[buffer(2)]],
    device const int* columns [[buffer(3)]],
    constant int* shape [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
  const int n = shape[0], i = int(position.x);
  if (i >= n) {
    return;
  }
  const ulong line = ulong(position.y) * ulong(n);
  const int column = columns[line + ulong(i)];
  const bool is_conjugate = column < 0;
  device const float2* from = found + line * ulong(n) + ulong(is_conjugate ? -1 - column : column);
  device float2* x = vectors + line * ulong(n) + ulong(i);
  const bool is_real = shape[1] != 0 && values[line + ulong(i)].y == 0.0f;
  float2 peak = float2(0.0f, 0.0f);
  float peak_size = 0.0f;
  for (int k = 0; k < n; ++k) {
    const float size = modulus(from[ulong(k) * ulong(n)]);
    if (size > peak_size) {
      peak_size = size;
      peak = from[ulong(k) * ulong(n)];
    }
  }
  const float2 turn = conjugate(peak / peak_size);
  // A sum in two floats: long vectors of equal elements would come out too long by a unit in the last place an element.
  float total = 0.0f, rest = 0.0f;
  for (int k = 0; k < n; ++k) {
    const float2 turned = times(from[ulong(k) * ulong(n)] / peak_size, turn);
    const float2 kept = is_real ? float2(turned.x, 0.0f) : is_conjugate ? conjugate(turned) : turned;
    x[ulong(k) * ulong(n)] = kept;
    const float square = squared(kept), sum = total + square, added = sum - total;
    rest += (total - (sum - added)) + (square - added);
    total = sum;
  }
  const float scale = 1.0f / precise::sqrt(total + rest);
  for (int k = 0; k < n; ++k) {
    x[ulong(k) * ulong(n)] *= scale;
  }
}
