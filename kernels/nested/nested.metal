#include "shared/report.metal"
#include "shared/strided.metal"

// Rows of `values` between two neighbouring offsets are an item; `padded` has a dimension of items and one of positions.
// A thread an element of `padded`, or 16 bytes of it: T has the size of what is moved.
struct jagged {
  long items, positions, inner, rows;  // `values` has `rows` rows of `inner` elements
  jagged(constant long* g) : items(g[0]), positions(g[1]), inner(g[2]), rows(g[3]) {}
};

// Where an element of `padded` is in `values`.
struct place {
  long at;      // -1 if the item is shorter, or reaches beyond the values
  bool first;   // whether the element is the first of its item
  bool inside;  // whether the item, cut off where `padded` ends, lies inside of the values
  long length;  // of the item

  place(long element, jagged of, device const long* offsets) {
    const long row = quotient(element, of.inner), item = quotient(row, of.positions);
    const long position = row - item * of.positions, start = offsets[item];
    length = max(offsets[item + 1] - start, 0l);
    inside = length == 0 || (start >= 0 && start + min(length, of.positions) <= of.rows);
    first = element == item * of.positions * of.inner;
    at = inside && position < length ? (start + position) * of.inner + (element - row * of.inner) : -1;
  }
};

template <typename T>
kernel void jagged_to_padded(
    device T* padded [[buffer(0)]],
    device const T* values [[buffer(1)]],
    device const long* offsets [[buffer(2)]],
    constant long* geometry [[buffer(3)]],
    constant T* padding [[buffer(4)]],
    REPORT_BUFFER(5) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const jagged of(geometry);
  const long element = element_of<long>(position, grid);
  if (element < of.items * of.positions * of.inner) {
    const place in_values(element, of, offsets);
    padded[element] = in_values.at < 0 ? *padding : values[in_values.at];
    if (in_values.first && !in_values.inside) {
      REPORT("_jagged_to_padded_dense_forward(): offsets reach beyond the values");
    }
  }
}

template <typename T>
kernel void padded_to_jagged(
    device T* values [[buffer(0)]],
    device const T* padded [[buffer(1)]],
    device const long* offsets [[buffer(2)]],
    constant long* geometry [[buffer(3)]],
    REPORT_BUFFER(4) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const jagged of(geometry);
  const long element = element_of<long>(position, grid);
  if (element < of.items * of.positions * of.inner) {
    const place in_values(element, of, offsets);
    if (in_values.at >= 0) {
      values[in_values.at] = padded[element];
    }
    if (in_values.first && in_values.length > of.positions) {
      REPORT("_padded_dense_to_jagged_forward(): found an item that is longer than the padded input");
    }
    if (element == 0 && offsets[of.items] != of.rows) {
      REPORT("_padded_dense_to_jagged_forward(): final offset should match total_L value");
    }
  }
}

#define JAGGED(T) \
  template [[host_name("jagged_to_padded_" #T)]] kernel void jagged_to_padded<T>( \
      device T*, device const T*, device const long*, constant long*, constant T*, REPORT_TYPE uint2, uint2); \
  template [[host_name("padded_to_jagged_" #T)]] kernel void padded_to_jagged<T>( \
      device T*, device const T*, device const long*, constant long*, REPORT_TYPE uint2, uint2);
JAGGED(uchar)
JAGGED(ushort)
JAGGED(uint)
JAGGED(ulong)
JAGGED(uint4)
