#include "shared/jacobi_blocks.metal"

// Singular values and vectors by one-sided Jacobi (Hestenes): columns are turned until all are orthogonal to each other.
// Then their lengths are the singular values, their directions the left vectors, and the product of all rotations the right
// ones. Columns that lie far from each other in length and close in direction would need many sweeps. So the columns are
// sorted by length and factorized into Q and R first, and the method runs on the conjugate transpose of R, whose columns
// are nearly orthogonal (Z. Drmac and K. Veselic, SIAM J. Matrix Anal. Appl. 29, 2008). Matrices are column-major; blocks
// of columns are rotated in pairs, by what diagonalizes their products.

// Half a unit in the last place.
constant float UNIT = 0x1p-24f;
// Columns shorter than this, beside largest elements near 1, are zero: their directions are rounding errors.
constant float NO_LENGTH = 0x1p-48f;
// The info of a matrix that is not finite, or has a singular value that is not.
constant int NOT_FINITE = -1;

// Which products of columns are as good as zero, beside their lengths.
struct beside_lengths {
  float tolerance;

  bool matters(float size, float first, float second) const {
    const float shortest = NO_LENGTH * NO_LENGTH;
    return first > shortest && second > shortest && size > tolerance * precise::sqrt(first) * precise::sqrt(second);
  }
};

// A group a matrix of so many elements: the largest, NaN where there is one, and the power of two to scale with.
template <typename T>
kernel void svd_scaling(
    device const T* matrices [[buffer(0)]],
    device float* scalings [[buffer(1)]],
    constant int& elements [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  device const T* source = matrices + ulong(group.y) * ulong(elements);
  float largest = 0.0f;
  for (int e = int(thread_index); e < elements; e += int(group_size.x)) {
    largest = max_of::combine(largest, larger_part(source[e]));
  }
  largest = reduce_group<max_of>(largest, scratch, thread_index, group_size.x);
  if (thread_index == 0) {
    scalings[ulong(group.y) * 2] = largest;
    scalings[ulong(group.y) * 2 + 1] = isfinite(largest) ? scale_for(largest) : 1.0f;
  }
}

// The number of columns that are before one of this length, longest first.
inline int place_of(
    device const float* lengths, int n, int column, threadgroup float* scratch, uint thread_index, uint threads) {
  const float length = lengths[column];
  float before = 0.0f;
  for (int i = int(thread_index); i < n; i += int(threads)) {
    before += lengths[i] > length || (lengths[i] == length && i < column) ? 1.0f : 0.0f;
  }
  return int(sum_group(before, scratch, thread_index, threads));
}

// A group a column of m elements: scales it and brings it to its place among the lengths. `order` has for each place the
// column that is there now.
template <typename T>
kernel void svd_sort(
    device const T* columns [[buffer(0)]],
    device const float* lengths [[buffer(1)]],
    device const float* scalings [[buffer(2)]],
    device T* sorted [[buffer(3)]],
    device int* order [[buffer(4)]],
    constant int& m [[buffer(5)]],
    constant int& n [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  const ulong matrix = group.y / uint(n), first = matrix * ulong(n);
  const int column = int(group.y % uint(n));
  const bool finite = isfinite(scalings[matrix * 2]);
  const float scale = scalings[matrix * 2 + 1];
  const int place = finite ? place_of(lengths + first, n, column, scratch, thread_index, group_size.x) : column;
  device const T* from = columns + ulong(group.y) * ulong(m);
  device T* to = sorted + (first + ulong(place)) * ulong(m);
  for (int i = int(thread_index); i < m; i += int(group_size.x)) {
    to[i] = finite ? from[i] * scale : number<T>(0.0f);
  }
  if (thread_index == 0) {
    order[first + ulong(place)] = column;
  }
}

// A group a column of the conjugate transpose of R, which is above the reflectors in `factors`; and the identity as
// rotations.
template <typename T>
kernel void svd_begin(
    device T* work [[buffer(0)]],
    device T* turns [[buffer(1)]],
    device const T* factors [[buffer(2)]],
    constant int& m [[buffer(3)]],
    constant int& n [[buffer(4)]],
    constant int& with_vectors [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const ulong matrix = group.y / uint(n), start = ulong(group.y) * ulong(n);
  const int column = int(group.y % uint(n));
  device const T* row = factors + matrix * ulong(n) * ulong(m) + ulong(column);
  for (int i = int(thread_index); i < n; i += int(group_size.x)) {
    work[start + ulong(i)] = i < column ? number<T>(0.0f) : conjugate(row[ulong(i) * ulong(m)]);
    if (with_vectors) {
      turns[start + ulong(i)] = number<T>(i == column ? 1.0f : 0.0f);
    }
  }
}

// A group of 256 threads a pivot pair of blocks of this round: finds what makes their columns orthogonal, and writes what
// the product of all these rotations adds to the identity. `busy` has an int a sweep: zero where nothing was turned that
// counts, and the sweeps after it do nothing.
template <typename T>
kernel void svd_pair_rotations(
    device const T* work [[buffer(0)]],
    device T* accumulated [[buffer(1)]],
    device int* busy [[buffer(2)]],
    device int* moved [[buffer(3)]],
    constant int& n [[buffer(4)]],
    constant int& blocks [[buffer(5)]],
    constant int& round [[buffer(6)]],
    constant int& sweep [[buffer(7)]],
    constant int& sweeps [[buffer(8)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  constexpr int ROOM = room<T>::value;
  constexpr int MOST = (ROOM * ROOM + 255) / 256;
  threadgroup T a[ROOM * ROOM], v[ROOM * ROOM];
  threadgroup float low[ROOM];
  threadgroup rotation<T> turned[ROOM / 2];
  threadgroup int turning;
  const uint threads = group_size.x;
  const int pairs = blocks / 2;
  const ulong matrix = group.y / uint(pairs);
  const int k = int(group.y % uint(pairs));
  device int* mine = busy + matrix * ulong(sweeps);
  if (sweep > 0 && mine[sweep - 1] == 0) {
    return;
  }
  device const T* whole = work + matrix * ulong(n) * ulong(n);
  const both_blocks columns = blocks_of(k, round, blocks, ROOM / 2, n);
  const int size = columns.size(), count = (size + 1) / 2 * 2;

  // The products of all columns, from ROOM of their elements at a time.
  T sums[MOST];
  for (int m = 0; m < MOST; ++m) {
    sums[m] = number<T>(0.0f);
  }
  for (int start = 0; start < n; start += ROOM) {
    const int length = min(ROOM, n - start);
    for (int e = int(thread_index); e < size * length; e += int(threads)) {
      const int j = e / length, i = e % length;
      a[j * ROOM + i] = whole[columns.row(j) * ulong(n) + ulong(start + i)];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int m = 0; m < MOST; ++m) {
      const int e = int(thread_index) + m * int(threads), i = e / count, j = e % count;
      if (i <= j && j < size) {
        T sum = number<T>(0.0f);
        for (int t = 0; t < length; ++t) {
          sum += times(conjugate(a[i * ROOM + t]), a[j * ROOM + t]);
        }
        sums[m] += sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int m = 0; m < MOST; ++m) {
    const int e = int(thread_index) + m * int(threads), i = e / count, j = e % count;
    if (i <= j && j < count) {
      a[i * ROOM + j] = i == j ? real_only(sums[m]) : sums[m];
      a[j * ROOM + i] = i == j ? real_only(sums[m]) : conjugate(sums[m]);
    }
  }
  for (int e = int(thread_index); e < count * count; e += int(threads)) {
    v[e / count * ROOM + e % count] = number<T>(0.0f);
  }
  for (int i = int(thread_index); i < count; i += int(threads)) {
    low[i] = 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Columns of any length have n small products, whose sum is known to a few units in the last place of the lengths. Less
  // is turned as well, but is not a reason for a further sweep; the last one finds out whether columns are orthogonal at
  // all.
  const beside_lengths counts = {(sweep == sweeps - 1 ? 64.0f : 4.0f) * UNIT};
  for (int m = 0; m < MOST; ++m) {
    const int e = int(thread_index) + m * int(threads), i = e / count, j = e % count;
    if (i < j && j < size &&
        counts.matters(modulus(a[i * ROOM + j]), real_of(a[i * ROOM + i]), real_of(a[j * ROOM + j]))) {
      mine[sweep] = 1;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool any = false;
  diagonalize(
      a, v, low, turned, &turning, count, size, ROOM, beside_lengths{UNIT}, MOST_SWEEPS, any, thread_index, threads);
  if (thread_index == 0) {
    moved[group.y] = any ? 1 : 0;
  }
  device T* rotations = accumulated + ulong(group.y) * ROOM * ROOM;
  for (int e = int(thread_index); any && e < size * size; e += int(threads)) {
    rotations[e / size * ROOM + e % size] = v[e / size * ROOM + e % size];
  }
}

// A group of 256 threads a strip: ROOM rows of the columns of one pair, in `work` first, then in the rotations.
template <typename T>
kernel void svd_apply(
    device T* work [[buffer(0)]],
    device T* turns [[buffer(1)]],
    device const T* accumulated [[buffer(2)]],
    device const int* busy [[buffer(3)]],
    device const int* moved [[buffer(4)]],
    constant int& n [[buffer(5)]],
    constant int& blocks [[buffer(6)]],
    constant int& round [[buffer(7)]],
    constant int& sweep [[buffer(8)]],
    constant int& sweeps [[buffer(9)]],
    constant int& strips [[buffer(10)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  constexpr int ROOM = room<T>::value;
  threadgroup T tile[ROOM * ROOM], turn[ROOM * ROOM];
  const int pairs = blocks / 2, high = (n + ROOM - 1) / ROOM;
  const ulong matrix = group.y / uint(strips);
  const int strip = int(group.y % uint(strips)), k = strip % pairs, place = strip / pairs;
  if ((sweep > 0 && busy[matrix * ulong(sweeps) + ulong(sweep - 1)] == 0) ||
      moved[matrix * ulong(pairs) + ulong(k)] == 0) {
    return;
  }
  const both_blocks columns = blocks_of(k, round, blocks, ROOM / 2, n);
  device T* to = (place < high ? work : turns) + matrix * ulong(n) * ulong(n);
  const int start = place % high * ROOM;
  device const T* rotations = accumulated + (matrix * ulong(pairs) + ulong(k)) * ROOM * ROOM;
  turn_strip<T, ROOM>(to, rotations, tile, turn, columns, start, min(ROOM, n - start), thread_index, group_size.x);
}

// A SIMD group a column of n elements: its length.
template <typename T>
kernel void svd_lengths(
    device const T* work [[buffer(0)]],
    device float* lengths [[buffer(1)]],
    constant int& n [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  device const T* column = work + ulong(group.y) * ulong(n);
  float largest = 0.0f;
  for (int i = int(lane); i < n; i += 32) {
    largest = max(largest, size_of(column[i]));
  }
  const float scale = scale_for(simd_max(largest));
  float squares = 0.0f;
  for (int i = int(lane); i < n; i += 32) {
    const float size = modulus(column[i] * scale);
    squares = fma(size, size, squares);
  }
  squares = simd_sum(squares);
  if (lane == 0) {
    lengths[group.y] = precise::sqrt(squares) / scale;
  }
}

// A group a column: brings its vectors to its place among the lengths, and the elements of its direction to theirs before
// the columns were sorted.
template <typename T>
kernel void svd_finish(
    device const T* work [[buffer(0)]],
    device const T* turns [[buffer(1)]],
    device const float* lengths [[buffer(2)]],
    device const int* order [[buffer(3)]],
    device const float* scalings [[buffer(4)]],
    device const int* busy [[buffer(5)]],
    device T* directions [[buffer(6)]],
    device float* values [[buffer(7)]],
    device T* rotations [[buffer(8)]],
    device int* infos [[buffer(9)]],
    constant int& n [[buffer(10)]],
    constant int& sweeps [[buffer(11)]],
    constant int& with_vectors [[buffer(12)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  const ulong matrix = group.y / uint(n), first = matrix * ulong(n), from = ulong(group.y) * ulong(n);
  const int column = int(group.y % uint(n));
  const uint threads = group_size.x;
  const float length = lengths[group.y];
  const ulong place = ulong(place_of(lengths + first, n, column, scratch, thread_index, threads));
  if (thread_index == 0) {
    const float value = length / scalings[matrix * 2 + 1];
    values[first + place] = value;
    if (place == 0) {
      const bool more = busy[matrix * ulong(sweeps) + ulong(sweeps - 1)] != 0;
      infos[matrix] = !isfinite(scalings[matrix * 2]) || isinf(value) ? NOT_FINITE : more ? n - 1 : 0;
    }
  }
  const ulong to = (first + place) * ulong(n);
  for (int i = int(thread_index); with_vectors && i < n; i += int(threads)) {
    const T direction = length < NO_LENGTH ? number<T>(0.0f) : work[from + ulong(i)] / length;
    directions[to + ulong(order[first + ulong(i)])] = direction;
    rotations[to + ulong(i)] = turns[from + ulong(i)];
  }
}

// The smallest number of several, and where it is.
struct valley {
  float value;
  int index;
};
struct lowest {
  static valley combine(valley a, valley b) {
    return a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b;
  }
};

// A group a matrix: directions of singular values that are zero, which come last, orthogonal to all others. Each begins
// with the axis that the vectors before it have least of; two projections make it orthogonal to them. A launch has the
// directions from `begin` to `end`.
template <typename T>
kernel void svd_complete(
    device T* directions [[buffer(0)]],
    device T* products [[buffer(1)]],
    device const float* values [[buffer(2)]],
    device const float* scalings [[buffer(3)]],
    constant int& n [[buffer(4)]],
    constant int& begin [[buffer(5)]],
    constant int& end [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup valley scratch[256];
  threadgroup float sums[32];
  const ulong matrix = group.y;
  const int threads = int(group_size.x), first = int(thread_index), lane = first % 32;
  device const float* value = values + matrix * ulong(n);
  device T* vectors = directions + matrix * ulong(n) * ulong(n);
  device T* product = products + matrix * ulong(n);
  if (!isfinite(scalings[matrix * 2])) {
    return;
  }
  for (int j = begin; j < end; ++j) {
    if (value[j] * scalings[matrix * 2 + 1] >= NO_LENGTH) {
      continue;
    }
    valley least = {2.0f * float(n), n};
    for (int i = first; i < n; i += threads) {
      float share = 0.0f;
      for (int k = 0; k < j; ++k) {
        const float size = modulus(vectors[ulong(k) * ulong(n) + ulong(i)]);
        share = fma(size, size, share);
      }
      least = lowest::combine(least, valley{share, i});
    }
    least = reduce_group<lowest>(least, scratch, thread_index, group_size.x);
    device T* vector = vectors + ulong(j) * ulong(n);
    for (int i = first; i < n; i += threads) {
      vector[i] = number<T>(i == least.index ? 1.0f : 0.0f);
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int k = first / 32; k < j; k += threads / 32) {
        T sum = number<T>(0.0f);
        for (int i = lane; i < n; i += 32) {
          sum += times(conjugate(vectors[ulong(k) * ulong(n) + ulong(i)]), vector[i]);
        }
        sum = simd_total(sum);
        if (lane == 0) {
          product[k] = sum;
        }
      }
      threadgroup_barrier(mem_flags::mem_device);
      for (int i = first; i < n; i += threads) {
        T x = vector[i];
        for (int k = 0; k < j; ++k) {
          x -= times(vectors[ulong(k) * ulong(n) + ulong(i)], product[k]);
        }
        vector[i] = x;
      }
      threadgroup_barrier(mem_flags::mem_device);
    }
    // The axis, which most of the length may lie in, is added last: otherwise each small square is rounded beside its.
    float squares = 0.0f;
    for (int i = first; i < n; i += threads) {
      const float size = i == least.index ? 0.0f : modulus(vector[i]);
      squares = fma(size, size, squares);
    }
    const float along = modulus(vector[least.index]);
    const float length = precise::sqrt(fma(along, along, sum_group(squares, sums, thread_index, group_size.x)));
    threadgroup_barrier(mem_flags::mem_device);  // all have read where one thread writes
    for (int i = first; i < n; i += threads) {
      vector[i] = vector[i] / length;
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
}

// A SIMD group's columns in threadgroup memory: a lane has a row of all of them, and touches no other.
template <typename T, int SIDE> struct own_row {
  threadgroup T* columns;
  int row;

  T at(int column) const { return row < SIDE ? columns[column * SIDE + row] : number<T>(0.0f); }
  void set(int column, T x) const {
    if (row < SIDE) {
      columns[column * SIDE + row] = x;
    }
  }
};

template <typename T> inline float square_length(T x) { return simd_sum(real_of(times(conjugate(x), x))); }

// A vector orthogonal to the first `count` rows of `vectors`, of m elements: from the axis that they have least of.
template <typename T> inline T completing(device const T* vectors, int count, int m, int row) {
  float share = row < m ? 0.0f : 2.0f * float(m);
  for (int k = 0; row < m && k < count; ++k) {
    const float size = modulus(vectors[k * m + row]);
    share = fma(size, size, share);
  }
  const float least = simd_min(share);
  const int axis = simd_min(share == least ? row : 32);
  T x = number<T>(row == axis ? 1.0f : 0.0f);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int k = 0; k < count; ++k) {
      const T known = row < m ? vectors[k * m + row] : number<T>(0.0f);
      x -= times(known, simd_total(times(conjugate(known), x)));
    }
  }
  const T none = number<T>(0.0f);
  // The axis is added last, as in svd_complete.
  return x / precise::sqrt(square_length(row == axis ? none : x) + square_length(row == axis ? x : none));
}

// A SIMD group a matrix of up to SIDE columns of up to SIDE elements. Of two columns that are turned the longer one comes
// first (P. de Rijk, SIAM Journal on Scientific and Statistical Computing 10, 1989). `left` gets `vectors` rows of m
// elements, none without vectors.
template <typename T, int SIDE>
kernel void svd_small(
    device const T* matrices [[buffer(0)]],
    device T* left [[buffer(1)]],
    device float* values [[buffer(2)]],
    device T* right [[buffer(3)]],
    device int* infos [[buffer(4)]],
    constant int& m [[buffer(5)]],
    constant int& n [[buffer(6)]],
    constant int& vectors [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup T memory[2 * SIDE * SIDE];
  const int row = int(lane);
  const own_row<T, SIDE> a = {memory, row}, v = {memory + SIDE * SIDE, row};
  const ulong matrix = group.y;
  device const T* source = matrices + matrix * ulong(n) * ulong(m);
  float largest = 0.0f;
  for (int j = 0; j < n; ++j) {
    const T x = row < m ? source[j * m + row] : number<T>(0.0f);
    largest = max_of::combine(largest, larger_part(x));
    a.set(j, x);
    v.set(j, number<T>(row == j ? 1.0f : 0.0f));
  }
  if (simd_max(isfinite(largest) ? 0 : 1) != 0) {
    if (row == 0) {
      infos[matrix] = NOT_FINITE;
    }
    return;
  }
  const float scale = scale_for(simd_max(largest));
  for (int j = 0; j < n; ++j) {
    a.set(j, a.at(j) * scale);
  }
  const float unit = 4.0f * 0x1p-24f;
  bool more = true;
  for (int sweep = 0; more && sweep < MOST_SWEEPS; ++sweep) {
    const beside_lengths rule = {sweep == MOST_SWEEPS - 1 ? 16.0f * unit : unit};
    more = false;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        T x = a.at(p), y = a.at(q);
        float first = square_length(x), second = square_length(y);
        const T product = simd_total(times(conjugate(x), y));
        if (!rule.matters(modulus(product), first, second)) {
          continue;
        }
        more = true;
        T one = v.at(p), other = v.at(q);
        float moved;
        const rotation<T> by = rotation_of(first, second, product, moved);
        turn_columns(by, x, y);
        turn_columns(by, one, other);
        const bool swaps = first - moved < second + moved;
        a.set(swaps ? q : p, x);
        a.set(swaps ? p : q, y);
        v.set(swaps ? q : p, one);
        v.set(swaps ? p : q, other);
      }
    }
  }

  // A lane has the length of the column of its number, and how many are before that.
  float length = 0.0f;
  for (int j = 0; j < n; ++j) {
    const T x = a.at(j);
    const float by = scale_for(simd_max(size_of(x)));
    const float size = precise::sqrt(square_length(x * by)) / by;
    length = row == j ? size : length;
  }
  int place = 0;
  for (int j = 0; j < n; ++j) {
    const float other = simd_broadcast(length, ushort(j));
    place += other > length || (other == length && j < row) ? 1 : 0;
  }
  if (row < n) {
    const float value = length / scale;
    values[matrix * ulong(n) + ulong(place)] = value;
    if (place == 0) {
      infos[matrix] = isinf(value) ? NOT_FINITE : more ? n - 1 : 0;
    }
  }
  device T* to = left + matrix * ulong(vectors) * ulong(m);
  device T* rotations = right + matrix * ulong(n) * ulong(n);
  for (int t = 0; t < vectors; ++t) {
    const int column = simd_max(row < n && place == t ? row : -1);
    const float size = simd_max(row == column ? length : 0.0f);
    const T x = size < NO_LENGTH ? completing(to, t, m, row) : a.at(column) / size;
    if (row < m) {
      to[t * m + row] = x;
    }
    if (column >= 0 && row < n) {
      rotations[t * n + row] = v.at(column);
    }
  }
}

#define SMALL_SVD(T, SIDE) \
  template [[host_name("svd_small" #SIDE "_" #T)]] kernel void svd_small<T, SIDE>( \
      device const T*, device T*, device float*, device T*, device int*, constant int&, constant int&, constant int&, \
      uint2, uint);
SMALL_SVD(float, 8)
SMALL_SVD(float, 32)
SMALL_SVD(float2, 8)
SMALL_SVD(float2, 32)

#define SVD(T) \
  template [[host_name("svd_scaling_" #T)]] kernel void svd_scaling<T>( \
      device const T*, device float*, constant int&, uint2, uint, uint2); \
  template [[host_name("svd_sort_" #T)]] kernel void svd_sort<T>( \
      device const T*, device const float*, device const float*, device T*, device int*, constant int&, constant int&, \
      uint2, uint, uint2); \
  template [[host_name("svd_begin_" #T)]] kernel void svd_begin<T>( \
      device T*, device T*, device const T*, constant int&, constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("svd_pair_rotations_" #T)]] kernel void svd_pair_rotations<T>( \
      device const T*, device T*, device int*, device int*, constant int&, constant int&, constant int&, \
      constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("svd_apply_" #T)]] kernel void svd_apply<T>( \
      device T*, device T*, device const T*, device const int*, device const int*, constant int&, constant int&, \
      constant int&, constant int&, constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("svd_lengths_" #T)]] kernel void svd_lengths<T>( \
      device const T*, device float*, constant int&, uint2, uint); \
  template [[host_name("svd_finish_" #T)]] kernel void svd_finish<T>( \
      device const T*, device const T*, device const float*, device const int*, device const float*, \
      device const int*, device T*, device float*, device T*, device int*, constant int&, constant int&, \
      constant int&, uint2, uint, uint2); \
  template [[host_name("svd_complete_" #T)]] kernel void svd_complete<T>( \
      device T*, device T*, device const float*, device const float*, constant int&, constant int&, constant int&, \
      uint2, uint, uint2);
SVD(float)
SVD(float2)
