#include <metal_stdlib>
using namespace metal;

// A group of 16 by 16 threads makes a tile of 64 by 64 results, 4 by 4 a thread: every byte that the group has read is
// used 64 times. simdgroup_matrix knows no integers. Tiles of the operands are filled with zeros beyond their ends.
constant constexpr int TILE = 64;
constant constexpr int DEPTH = 32;
constant constexpr int SIDE = 16;
constant constexpr int EACH = TILE / SIDE;

// sizes: rows, columns and inner dimension of the product, the strides of a, those of b.
template <typename T>
kernel void int_mm(
    device int* out [[buffer(0)]],
    device const T* a [[buffer(1)]],
    device const char* b [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]]) {
  threadgroup T left[TILE][DEPTH];
  threadgroup char right[DEPTH][TILE];
  const long rows = sizes[0], columns = sizes[1], inner = sizes[2];
  const long first_row = long(group.y) * TILE, first_column = long(group.x) * TILE;
  const int thread_index = int(in_group.y) * SIDE + int(in_group.x);
  int sums[EACH][EACH] = {};
  for (long start = 0; start < inner; start += DEPTH) {
    for (int e = thread_index; e < TILE * DEPTH; e += SIDE * SIDE) {
      const int r = e / DEPTH, k = e % DEPTH;
      const bool inside = first_row + r < rows && start + k < inner;
      left[r][k] = inside ? a[(first_row + r) * sizes[3] + (start + k) * sizes[4]] : T(0);
      const int depth = e / TILE, c = e % TILE;
      const bool is_inside = start + depth < inner && first_column + c < columns;
      right[depth][c] = is_inside ? b[(start + depth) * sizes[5] + (first_column + c) * sizes[6]] : char(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < DEPTH; ++k) {
      int row_values[EACH], column_values[EACH];
      for (int i = 0; i < EACH; ++i) {
        row_values[i] = int(left[int(in_group.y) + i * SIDE][k]);
        column_values[i] = int(right[k][int(in_group.x) + i * SIDE]);
      }
      for (int i = 0; i < EACH; ++i) {
        for (int j = 0; j < EACH; ++j) {
          sums[i][j] += row_values[i] * column_values[j];
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const long row = first_row + int(in_group.y) + i * SIDE, column = first_column + int(in_group.x) + j * SIDE;
      if (row < rows && column < columns) {
        out[row * columns + column] = sums[i][j];
      }
    }
  }
}

#define INT_MM(T) \
  template [[host_name("int_mm_" #T)]] kernel void int_mm<T>( \
      device int*, device const T*, device const char*, constant long*, uint2, uint2);

INT_MM(char)
INT_MM(uchar)
