// Specification, Program Scope Global Built-ins (Metal 3.1). out: 3 1003 2003 3003
#include <metal_stdlib>
using namespace metal;

uint2 gid [[thread_position_in_grid]];
const ushort lane [[thread_index_in_simdgroup]];
namespace group {
uint size [[threads_per_threadgroup]];
}
struct Place {
  uint gid;
};

static uint after(threadgroup uint* shared) {
  shared[lane] = gid.xy.x;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return gid.x * 1000 + shared[group::size - 1];
}
static uint hidden(uint gid) { return gid - gid; }

kernel void k(device float* out) {
  threadgroup uint shared[4];
  const Place place{after(shared)};
  out[min(gid.x, uint(lane))] = place.gid + hidden(7);
}
