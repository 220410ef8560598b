// Builtins of a kernel, from the scheduler's threadgroup and the thread's position in it. `d` is the dimension.
#include "runtime.h"

// Same layout as Group in simulator/metal/runtime/runtime.h.
struct Group {
  u32 threads[3]; // in this group: fewer at the edge of the grid
  u32 full_threads[3]; // in a full group
  u32 position[3];
  u32 groups[3];
  u32 grid[3];
  const u64* arguments;
};

AIR_LOCAL u32 index_in_group(const Group* g, u32 x, u32 y, u32 z) {
  return x + g->threads[0] * (y + g->threads[1] * z);
}
AIR_LOCAL u32 product(const u32* n) { return n[0] * n[1] * n[2]; }
AIR_LOCAL u32 simdgroups(u32 threads) { return (threads + kSimdWidth - 1) / kSimdWidth; }
AIR_LOCAL u32 chosen(u32 x, u32 y, u32 z, u32 d) { return d == 0 ? x : d == 1 ? y : z; }

#define BUILTIN(name, value) \
  AIR u32 airrt_##name(const Group* g, u32 x, u32 y, u32 z, u32 d) { \
    (void)g, (void)x, (void)y, (void)z, (void)d; \
    return value; \
  }
BUILTIN(thread_position_in_grid, g->position[d] * g->full_threads[d] + chosen(x, y, z, d))
BUILTIN(thread_position_in_threadgroup, chosen(x, y, z, d))
BUILTIN(threadgroup_position_in_grid, g->position[d])
BUILTIN(threads_per_threadgroup, g->threads[d])
BUILTIN(dispatch_threads_per_threadgroup, g->full_threads[d])
BUILTIN(threadgroups_per_grid, g->groups[d])
BUILTIN(threads_per_grid, g->grid[d])
BUILTIN(thread_index_in_threadgroup, index_in_group(g, x, y, z))
BUILTIN(thread_index_in_simdgroup, index_in_group(g, x, y, z) % kSimdWidth)
BUILTIN(simdgroup_index_in_threadgroup, index_in_group(g, x, y, z) / kSimdWidth)
BUILTIN(simdgroups_per_threadgroup, simdgroups(product(g->threads)))
BUILTIN(dispatch_simdgroups_per_threadgroup, simdgroups(product(g->full_threads)))
BUILTIN(threads_per_simdgroup, kSimdWidth)
BUILTIN(thread_execution_width, kSimdWidth)
