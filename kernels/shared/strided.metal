// Where the operands of one element stand in tensors of any layout.
#include "shared/division.metal"

// The layout of N operands as the host passes it (runtime/layout.py):
// elements, dimensions, then the sizes, then N rows of strides, all with the innermost dimension first.
// What is left for the outermost dimension is the position in it, which saves a division: the only one where every second
// element of a vector is read (the maximum of such a vector takes half the time on an H200), one of two in a matrix.
template <uint N, typename I> struct offsets {
  I at[N];

  offsets(constant I* layout, I element) {
    const uint dimensions = uint(layout[1]);
    constant I* sizes = layout + 2;
    constant I* strides = sizes + dimensions;
    for (uint operand = 0; operand < N; ++operand) {
      at[operand] = 0;
    }
    for (uint d = 0; d < dimensions; ++d) {
      const I rest = d + 1 < dimensions ? quotient(element, sizes[d]) : 0;
      const I position = element - rest * sizes[d];
      element = rest;
      for (uint operand = 0; operand < N; ++operand) {
        at[operand] += position * strides[operand * dimensions + d];
      }
    }
  }
};

// The element that a thread works on; beyond 2^32 elements the host launches rows of threads.
template <typename I> inline I element_of(uint2 thread_position, uint2 grid) {
  return I(thread_position.y) * I(grid.x) + I(thread_position.x);
}
