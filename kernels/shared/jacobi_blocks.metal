// Block Jacobi: a group solves the problem of one pair of blocks of rows of a large matrix; others apply its rotations.
#include "shared/jacobi.metal"

// Rows of the matrix that one group has room for, twice, beside what else it needs.
template <typename T> struct room {};
template <> struct room<float> { static constant constexpr int value = 48; };
template <> struct room<float2> { static constant constexpr int value = 32; };

// The rows that two blocks have: place i among them is row rows(i) of the matrix.
struct both_blocks {
  int first;
  int second;
  int width; // of each block, but for those at the end of the matrix
  int n;

  int of_first() const { return clamp(n - first * width, 0, width); }
  int size() const { return of_first() + clamp(n - second * width, 0, width); }
  ulong row(int i) const { return ulong(i < of_first() ? first * width + i : second * width + (i - of_first())); }
};

inline both_blocks blocks_of(int k, int round, int blocks, int width, int n) {
  const pivot_pair at = pair_of(k, round, blocks);
  return both_blocks{at.first, at.second, width, n};
}

// Adds a b, or conj(a)^T b, to c, in threadgroup memory; c may be one of them.
template <typename T, bool ADJOINT, int ROOM>
inline void add_product(
    threadgroup const T* a,
    threadgroup const T* b,
    threadgroup T* c,
    int rows,
    int inner,
    int columns,
    uint thread_index,
    uint threads) {
  constexpr int MOST = (ROOM * ROOM + 255) / 256;
  T kept[MOST];
  for (int m = 0; m < MOST; ++m) {
    const int e = int(thread_index) + m * int(threads);
    if (e < rows * columns) {
      const int i = e / columns, j = e % columns;
      T sum = number<T>(0.0f);
      for (int t = 0; t < inner; ++t) {
        sum += times(ADJOINT ? conjugate(a[t * ROOM + i]) : a[i * ROOM + t], b[t * ROOM + j]);
      }
      kept[m] = sum;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int m = 0; m < MOST; ++m) {
    const int e = int(thread_index) + m * int(threads);
    if (e < rows * columns) {
      c[e / columns * ROOM + e % columns] += kept[m];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// The rotations of a pair of blocks, which are the columns of I + turn, applied to `width` elements of the blocks' rows
// from `start` on: the rows become those of (I + turn)^T times them. The rows have n elements; `tile` and `turn` are for
// the group's work.
template <typename T, int ROOM>
inline void turn_strip(
    device T* matrix,
    device const T* rotations,
    threadgroup T* tile,
    threadgroup T* turn,
    both_blocks rows,
    int start,
    int width,
    uint thread_index,
    uint threads) {
  const int size = rows.size();
  for (int e = int(thread_index); e < size * width; e += int(threads)) {
    const int i = e / width, j = e % width;
    tile[i * ROOM + j] = matrix[rows.row(i) * ulong(rows.n) + ulong(start + j)];
  }
  for (int e = int(thread_index); e < size * size; e += int(threads)) {
    const int i = e / size, j = e % size;
    turn[i * ROOM + j] = conjugate(rotations[i * ROOM + j]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  add_product<T, true, ROOM>(turn, tile, tile, size, size, width, thread_index, threads);
  for (int e = int(thread_index); e < size * width; e += int(threads)) {
    const int i = e / width, j = e % width;
    matrix[rows.row(i) * ulong(rows.n) + ulong(start + j)] = tile[i * ROOM + j];
  }
}
