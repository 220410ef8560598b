#include "shared/reduce.metal"

// A run of equal values in a sorted row: how long it is and where it starts.
struct run {
  int length;
  int start;
};

// The longer run, and of equally long ones the earlier, which has the smaller value.
struct longest_run {
  static run combine(run a, run b) {
    return a.length > b.length || (a.length == b.length && a.start < b.start) ? a : b;
  }
};

// Behind the last position in `row` whose value is that of `start`; the row is sorted, NaNs last.
template <typename T> inline int end_of_run(device const T* row, int start, int size) {
  int low = start + 1, high = size;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (row[middle] == row[start]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A group a row. Every thread looks at its share of the positions; where a run starts there, a binary search finds its
// end. NaNs differ from each other: each is a run of one.
// `positions` tells where the sorted values stood: the value that stood last is the one that torch reports.
template <typename T>
kernel void mode_of_sorted(
    device T* values [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* sorted [[buffer(2)]],
    device const long* positions [[buffer(3)]],
    constant int& size [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint row_index = group.y;
  const uint threads = group_size.x;
  threadgroup run scratch[256];
  device const T* row = sorted + ulong(row_index) * ulong(size);
  run best = {0, 0};
  for (int i = int(thread_index); i < size; i += int(threads)) {
    if (i == 0 || row[i - 1] != row[i]) {
      best = longest_run::combine(best, run{end_of_run(row, i, size) - i, i});
    }
  }
  best = reduce_group<longest_run>(best, scratch, thread_index, threads);
  if (thread_index != 0) {
    return;
  }
  const int last = best.start + best.length - 1;
  values[row_index] = row[last];
  indices[row_index] = positions[ulong(row_index) * ulong(size) + ulong(last)];
}

#define MODE(T) \
  template [[host_name("mode_" #T)]] kernel void mode_of_sorted<T>( \
      device T*, device long*, device const T*, device const long*, constant int&, uint2, uint, uint2);
MODE(float)
MODE(half)
MODE(bfloat)
MODE(long)
MODE(int)
MODE(short)
MODE(char)
MODE(uchar)
