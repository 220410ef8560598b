#include "shared/jacobi_blocks.metal"

// Eigenvalues and eigenvectors of Hermitian matrices. A small matrix is solved by one group in threadgroup memory. A large
// one is cut into blocks of columns: a group diagonalizes what two blocks have in common, and others apply that to the
// rest of the matrix (block Jacobi).

// An element of a Hermitian matrix of which one triangle is read, the upper or the lower one.
template <typename T> inline T hermitian_element(device const T* a, int i, int j, int n, bool upper) {
  if (i == j) {
    return real_only(a[ulong(i) * ulong(n) + ulong(i)]);
  }
  return (i > j) != upper ? a[ulong(i) * ulong(n) + ulong(j)] : conjugate(a[ulong(j) * ulong(n) + ulong(i)]);
}

// What scaling a matrix takes, and which of its elements count.
struct scaling {
  float largest;  // NaN where there is a NaN
  float scale;
  float smallest;
};

template <typename T>
inline scaling scaling_of(
    device const T* a, int n, bool upper, threadgroup float* scratch, uint thread_index, uint threads) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) {
    for (int j = i + int(thread_index); j < n; j += int(threads)) {
      const T x = upper ? hermitian_element(a, i, j, n, true) : hermitian_element(a, j, i, n, false);
      largest = max_of::combine(largest, larger_part(x));
    }
  }
  largest = reduce_group<max_of>(largest, scratch, thread_index, threads);
  const float scale = scale_for(largest);
  float squares = 0.0f;
  for (int i = 0; i < n; ++i) {
    for (int j = i + int(thread_index); j < n; j += int(threads)) {
      const T x = upper ? hermitian_element(a, i, j, n, true) : hermitian_element(a, j, i, n, false);
      const float size = modulus(x * scale);
      squares = fma(i == j ? size : 2.0f * size, size, squares);
    }
  }
  const float norm = precise::sqrt(sum_group(squares, scratch, thread_index, threads));
  // All elements that are left out have a norm of an eighth of a unit in the last place of the matrix's.
  return scaling{largest, scale, norm * 0x1p-26f / float(n)};
}

// Whether value i of `w` comes before value j.
inline bool comes_before(float left, int i, float right, int j) { return left < right || (left == right && i < j); }

// The info of a matrix that is not finite.
constant int NOT_FINITE = -1;

template <typename T>
kernel void eigh_small(
    device const T* matrices [[buffer(0)]],
    device float* values [[buffer(1)]],
    device T* vectors [[buffer(2)]],
    device int* infos [[buffer(3)]],
    constant int& n [[buffer(4)]],
    constant int& upper [[buffer(5)]],
    constant int& with_vectors [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  constexpr int ROOM = room<T>::value;
  threadgroup T a[ROOM * ROOM], v[ROOM * ROOM];
  threadgroup float low[ROOM];
  threadgroup rotation<T> turned[ROOM / 2];
  threadgroup float scratch[256];
  threadgroup int ranks[ROOM];
  threadgroup int busy;
  const uint threads = group_size.x;
  const ulong matrix = group.y;
  device const T* source = matrices + matrix * ulong(n) * ulong(n);
  device float* w = values + matrix * ulong(n);
  device T* result = vectors + (with_vectors ? matrix * ulong(n) * ulong(n) : 0);
  const int count = (n + 1) / 2 * 2;

  const scaling of = scaling_of(source, n, upper != 0, scratch, thread_index, threads);
  const bool finite = isfinite(of.largest);
  for (int e = int(thread_index); e < count * count; e += int(threads)) {
    const int i = e / count, j = e % count;
    const bool inside = i < n && j < n && finite;
    a[i * ROOM + j] = inside ? hermitian_element(source, i, j, n, upper != 0) * of.scale : number<T>(0.0f);
    v[i * ROOM + j] = number<T>(0.0f);
    low[i] = 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool any = false;
  const bool more = diagonalize(
      a, v, low, turned, &busy, count, with_vectors ? n : 0, ROOM, beside_norm{of.smallest}, MOST_SWEEPS, any,
      thread_index, threads);
  const float back = 1.0f / of.scale;
  for (int i = int(thread_index); i < n; i += int(threads)) {
    const float mine = real_of(a[i * ROOM + i]);
    int rank = 0;
    for (int j = 0; j < n; ++j) {
      rank += comes_before(real_of(a[j * ROOM + j]), j, mine, i) ? 1 : 0;
    }
    ranks[i] = rank;
    w[rank] = mine * back;
  }
  if (thread_index == 0) {
    infos[matrix] = !finite ? NOT_FINITE : more ? n - 1 : 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int e = int(thread_index); with_vectors && e < n * n; e += int(threads)) {
    const int i = e % n, j = e / n;
    result[ranks[j] * n + i] = v[i * ROOM + j] + number<T>(i == j ? 1.0f : 0.0f);
  }
}

// Large matrices. `work` holds each scaled and whole; the rows of `vectors` are its eigenvectors, in no order.

// A group a matrix. `scalings`: scale and threshold, and the largest element, of each.
template <typename T>
kernel void eigh_scaling(
    device const T* matrices [[buffer(0)]],
    device float* scalings [[buffer(1)]],
    constant int& n [[buffer(2)]],
    constant int& upper [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  device const T* source = matrices + ulong(group.y) * ulong(n) * ulong(n);
  const scaling of = scaling_of(source, n, upper != 0, scratch, thread_index, group_size.x);
  if (thread_index == 0) {
    device float* to = scalings + ulong(group.y) * 3;
    to[0] = of.largest;
    to[1] = of.scale;
    to[2] = of.smallest;
  }
}

// A group a row of a matrix.
template <typename T>
kernel void eigh_begin(
    device const T* matrices [[buffer(0)]],
    device const float* scalings [[buffer(1)]],
    device T* work [[buffer(2)]],
    device T* vectors [[buffer(3)]],
    constant int& n [[buffer(4)]],
    constant int& upper [[buffer(5)]],
    constant int& with_vectors [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const ulong matrix = group.y / uint(n);
  const int row = int(group.y % uint(n));
  device const T* source = matrices + matrix * ulong(n) * ulong(n);
  const bool finite = isfinite(scalings[matrix * 3]);
  const float scale = scalings[matrix * 3 + 1];
  const ulong start = ulong(group.y) * ulong(n);
  for (int j = int(thread_index); j < n; j += int(group_size.x)) {
    work[start + ulong(j)] = finite ? hermitian_element(source, row, j, n, upper != 0) * scale : number<T>(0.0f);
    if (with_vectors) {
      vectors[start + ulong(j)] = number<T>(row == j ? 1.0f : 0.0f);
    }
  }
}

// A group a pivot pair of blocks of this round: diagonalizes their rows and columns of `work`, and writes what the product
// of all these rotations adds to the identity. `busy` has an int a sweep: zero where the sweep found nothing to turn.
template <typename T>
kernel void eigh_pair_rotations(
    device T* work [[buffer(0)]],
    device float* lows [[buffer(1)]],
    device T* accumulated [[buffer(2)]],
    device int* busy [[buffer(3)]],
    device int* moved [[buffer(4)]],
    device const float* scalings [[buffer(5)]],
    constant int& n [[buffer(6)]],
    constant int& blocks [[buffer(7)]],
    constant int& round [[buffer(8)]],
    constant int& sweep [[buffer(9)]],
    constant int& sweeps [[buffer(10)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  constexpr int ROOM = room<T>::value;
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
  device T* whole = work + matrix * ulong(n) * ulong(n);
  const both_blocks rows = blocks_of(k, round, blocks, ROOM / 2, n);
  const int size = rows.size(), count = (size + 1) / 2 * 2;
  for (int e = int(thread_index); e < count * count; e += int(threads)) {
    const int i = e / count, j = e % count;
    const bool inside = i < size && j < size;
    a[i * ROOM + j] = inside ? whole[rows.row(i) * ulong(n) + rows.row(j)] : number<T>(0.0f);
    v[i * ROOM + j] = number<T>(0.0f);
  }
  for (int i = int(thread_index); i < count; i += int(threads)) {
    low[i] = i < size ? lows[matrix * ulong(n) + rows.row(i)] : 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool any = false;
  diagonalize(
      a, v, low, turned, &turning, count, size, ROOM, beside_norm{scalings[matrix * 3 + 2]}, MOST_SWEEPS, any,
      thread_index, threads);
  if (thread_index == 0) {
    moved[group.y] = any ? 1 : 0;
    if (any) {
      mine[sweep] = 1;
    }
  }
  if (!any) {
    return;
  }
  device T* rotations = accumulated + ulong(group.y) * ROOM * ROOM;
  // Each thread writes the elements that it read: no barrier orders device memory here.
  for (int e = int(thread_index); e < count * count; e += int(threads)) {
    const int i = e / count, j = e % count;
    if (i < size && j < size) {
      whole[rows.row(i) * ulong(n) + rows.row(j)] = a[i * ROOM + j];
      rotations[i * ROOM + j] = v[i * ROOM + j];
    }
  }
  for (int i = int(thread_index); i < size; i += int(threads)) {
    lows[matrix * ulong(n) + rows.row(i)] = low[i];
  }
}

// A group of 256 threads a tile: first those of `work` where the pairs k < l cross, then those of the vectors.
template <typename T>
kernel void eigh_apply(
    device T* work [[buffer(0)]],
    device T* vectors [[buffer(1)]],
    device const T* accumulated [[buffer(2)]],
    device const int* busy [[buffer(3)]],
    device const int* moved [[buffer(4)]],
    constant int& n [[buffer(5)]],
    constant int& blocks [[buffer(6)]],
    constant int& round [[buffer(7)]],
    constant int& sweep [[buffer(8)]],
    constant int& sweeps [[buffer(9)]],
    constant int& tiles [[buffer(10)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  constexpr int ROOM = room<T>::value;
  threadgroup T tile[ROOM * ROOM], turn[ROOM * ROOM];
  const uint threads = group_size.x;
  const int pairs = blocks / 2, crossings = pairs * (pairs - 1) / 2;
  const ulong matrix = group.y / uint(tiles);
  const int number_of_tile = int(group.y % uint(tiles));
  if (busy[matrix * ulong(sweeps) + ulong(sweep)] == 0) {
    return;
  }
  device const int* moves = moved + matrix * ulong(pairs);
  device const T* rotations = accumulated + matrix * ulong(pairs) * ROOM * ROOM;
  if (number_of_tile >= crossings) {
    const int strip = number_of_tile - crossings, k = strip % pairs, start = strip / pairs * ROOM;
    if (moves[k] != 0) {
      const both_blocks rows = blocks_of(k, round, blocks, ROOM / 2, n);
      turn_strip<T, ROOM>(
          vectors + matrix * ulong(n) * ulong(n), rotations + k * ROOM * ROOM, tile, turn, rows, start,
          min(ROOM, n - start), thread_index, threads);
    }
    return;
  }
  const int k = number_of_tile % pairs, l = (k + 1 + number_of_tile / pairs) % pairs;
  if (moves[k] == 0 && moves[l] == 0) {
    return;
  }
  const both_blocks left = blocks_of(k, round, blocks, ROOM / 2, n), right = blocks_of(l, round, blocks, ROOM / 2, n);
  const int rows = left.size(), columns = right.size();
  device T* to = work + matrix * ulong(n) * ulong(n);
  for (int e = int(thread_index); e < rows * columns; e += int(threads)) {
    const int i = e / columns, j = e % columns;
    tile[i * ROOM + j] = to[left.row(i) * ulong(n) + right.row(j)];
  }
  if (moves[k] != 0) {
    for (int e = int(thread_index); e < rows * rows; e += int(threads)) {
      turn[e / rows * ROOM + e % rows] = rotations[k * ROOM * ROOM + e / rows * ROOM + e % rows];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_product<T, true, ROOM>(turn, tile, tile, rows, rows, columns, thread_index, threads);
  }
  if (moves[l] != 0) {
    for (int e = int(thread_index); e < columns * columns; e += int(threads)) {
      turn[e / columns * ROOM + e % columns] = rotations[l * ROOM * ROOM + e / columns * ROOM + e % columns];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_product<T, false, ROOM>(tile, turn, tile, rows, columns, columns, thread_index, threads);
  }
  for (int e = int(thread_index); e < rows * columns; e += int(threads)) {
    const int i = e / columns, j = e % columns;
    const T x = tile[i * ROOM + j];
    to[left.row(i) * ulong(n) + right.row(j)] = x;
    to[right.row(j) * ulong(n) + left.row(i)] = conjugate(x);
  }
}

// A group an eigenvalue: finds its place, and copies its vector there.
template <typename T>
kernel void eigh_finish(
    device const T* work [[buffer(0)]],
    device const T* unordered [[buffer(1)]],
    device const float* scalings [[buffer(2)]],
    device const int* busy [[buffer(3)]],
    device float* values [[buffer(4)]],
    device T* vectors [[buffer(5)]],
    device int* infos [[buffer(6)]],
    constant int& n [[buffer(7)]],
    constant int& sweeps [[buffer(8)]],
    constant int& with_vectors [[buffer(9)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  const ulong matrix = group.y / uint(n);
  const int i = int(group.y % uint(n));
  const uint threads = group_size.x;
  device const T* whole = work + matrix * ulong(n) * ulong(n);
  const float mine = real_of(whole[ulong(i) * ulong(n + 1)]);
  float before = 0.0f;
  for (int j = int(thread_index); j < n; j += int(threads)) {
    before += comes_before(real_of(whole[ulong(j) * ulong(n + 1)]), j, mine, i) ? 1.0f : 0.0f;
  }
  const ulong rank = ulong(sum_group(before, scratch, thread_index, threads));
  if (thread_index == 0) {
    values[matrix * ulong(n) + rank] = mine / scalings[matrix * 3 + 1];
    if (i == 0) {
      const bool more = busy[matrix * ulong(sweeps) + ulong(sweeps - 1)] != 0;
      infos[matrix] = !isfinite(scalings[matrix * 3]) ? NOT_FINITE : more ? n - 1 : 0;
    }
  }
  for (int j = int(thread_index); with_vectors && j < n; j += int(threads)) {
    vectors[(matrix * ulong(n) + rank) * ulong(n) + ulong(j)] = unordered[ulong(group.y) * ulong(n) + ulong(j)];
  }
}

#define EIGH(T) \
  template [[host_name("eigh_small_" #T)]] kernel void eigh_small<T>( \
      device const T*, device float*, device T*, device int*, constant int&, constant int&, constant int&, uint2, \
      uint, uint2); \
  template [[host_name("eigh_scaling_" #T)]] kernel void eigh_scaling<T>( \
      device const T*, device float*, constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("eigh_begin_" #T)]] kernel void eigh_begin<T>( \
      device const T*, device const float*, device T*, device T*, constant int&, constant int&, constant int&, uint2, \
      uint, uint2); \
  template [[host_name("eigh_pair_rotations_" #T)]] kernel void eigh_pair_rotations<T>( \
      device T*, device float*, device T*, device int*, device int*, device const float*, constant int&, \
      constant int&, constant int&, constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("eigh_apply_" #T)]] kernel void eigh_apply<T>( \
      device T*, device T*, device const T*, device const int*, device const int*, constant int&, constant int&, \
      constant int&, constant int&, constant int&, constant int&, uint2, uint, uint2); \
  template [[host_name("eigh_finish_" #T)]] kernel void eigh_finish<T>( \
      device const T*, device const T*, device const float*, device const int*, device float*, device T*, device int*, \
      constant int&, constant int&, constant int&, uint2, uint, uint2);
EIGH(float)
EIGH(float2)
