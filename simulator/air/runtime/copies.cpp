// Copies of a SIMD group: its active lanes take turns. Elements are loaded and stored one by one, as the checker requires.
#include "lanes.h"

// Not inlined: a kernel has dozens of calls.
#define APART static __attribute__((noinline))

struct Turns { u64 first, step; };
AIR_LOCAL Turns turns_of_lane() {
  auto v = Lanes<u32>::share(0);
  return {(u64)__builtin_popcount(v.shared->mask & ((1u << v.lane) - 1)), (u64)__builtin_popcount(v.shared->mask)};
}

// `from` is null for zeros.
template <class T> AIR_LOCAL void copy_parts(u64 size, u64 to, u64 from) {
  for (u64 at = 0; at < size; at += sizeof(T)) *(volatile T*)(to + at) = from ? *(volatile T*)(from + at) : T{};
}
APART void copy_element(u64 size, u64 to, u64 from) {
  if (size % 4 == 0) return copy_parts<u32>(size, to, from);
  if (size % 2 == 0) return copy_parts<u16>(size, to, from);
  copy_parts<u8>(size, to, from);
}

struct Plane { u64 address, row, unused, width, height; };
APART void copy_plane(Turns turns, u64 size, const Plane& to, const Plane& from, s64 left, s64 top, bool clamp) {
  const s64 width = from.width, height = from.height;
  for (u64 i = turns.first; i < to.width * to.height; i += turns.step) {
    s64 column = i % to.width, row = i / to.width, x = column + left, y = row + top;
    if (clamp) {
      x = x < 0 ? 0 : x < width ? x : width - 1;
      y = y < 0 ? 0 : y < height ? y : height - 1;
    }
    bool inside = x >= 0 && y >= 0 && x < width && y < height;
    u64 source = inside ? from.address + (y * from.row + x) * size : 0;
    copy_element(size, to.address + (row * to.row + column) * size, source);
  }
}

AIR void airrt_simdgroup_async_copy_1d(u64 size, u64 alignment, u64 to, u64 from, u64 count) {
  copy_plane(turns_of_lane(), size, {to, count, 1, count, 1}, {from, count, 1, count, 1}, 0, 0, false);
}
AIR void airrt_simdgroup_async_copy_2d(
    u64 size,
    u64 alignment,
    u64 to,
    u64 to_row,
    u64,
    u64 to_width,
    u64 to_height,
    u64 from,
    u64 from_row,
    u64,
    u64 width,
    u64 height,
    s64 left,
    s64 top,
    u32 clamp) {
  copy_plane(
      turns_of_lane(), size, {to, to_row, 1, to_width, to_height}, {from, from_row, 1, width, height}, left, top,
      clamp);
}
