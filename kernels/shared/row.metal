// The elements of one row that a thread of many takes.
#include "shared/strided.metal"

// How many loads of a row a thread has under way at a time: with one it waits for each.
constexpr constant uint ROW_LOADS = 8;

// Of a row with one stride, as nearly all have: each load is an addition away from the one before.
template <typename TAKER, typename T>
inline void take_along(thread TAKER& taker, device const T* row, ulong count, ulong stride, ulong first, ulong step) {
  const ulong hop = step * stride;
  device const T* next = row + first * stride;
  ulong e = first;
  for (; e + (ROW_LOADS - 1) * step < count; e += ROW_LOADS * step) {
    T loaded[ROW_LOADS];
    for (uint k = 0; k < ROW_LOADS; ++k) {
      loaded[k] = next[k * hop];
    }
    next += ROW_LOADS * hop;
    taker.take_several(loaded);
  }
  for (; e < count; e += step) {
    taker.take(*next);
    next += hop;
  }
}

// Of a row in several dimensions: each element's place takes a division for each of them.
template <typename TAKER, typename T>
inline void take_across(thread TAKER& taker, device const T* row, constant ulong* columns, ulong first, ulong step) {
  const ulong count = columns[0];
  ulong e = first;
  for (; e + (ROW_LOADS - 1) * step < count; e += ROW_LOADS * step) {
    T loaded[ROW_LOADS];
    for (uint k = 0; k < ROW_LOADS; ++k) {
      loaded[k] = row[offsets<1, ulong>(columns, e + k * step).at[0]];
    }
    taker.take_several(loaded);
  }
  for (; e < count; e += step) {
    taker.take(row[offsets<1, ulong>(columns, e).at[0]]);
  }
}

// Gives `taker` the elements first, first + step, ... of a row: ROW_LOADS at a time, then one by one.
template <typename TAKER, typename T>
inline void take_share(thread TAKER& taker, device const T* row, constant ulong* columns, ulong first, ulong step) {
  if (columns[1] <= 1) {
    take_along(taker, row, columns[0], columns[1] == 1 ? columns[3] : 0, first, step);
  } else {
    take_across(taker, row, columns, first, step);
  }
}
