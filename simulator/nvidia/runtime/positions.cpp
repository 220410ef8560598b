// Builtins of a kernel. `launch` is struct nvidia_launch; `d` is the dimension.
#include "nvidia/kernel.h"
#include "runtime.h"

#define BUILTIN(name) \
  AIR u32 airrt_##name(const nvidia_launch* launch, u32 d) { \
    metal::uint3 at = metal::nvidia_thread{*launch}.name(); \
    return d == 0 ? at.x : d == 1 ? at.y : at.z; \
  }
#define NUMBER(name) \
  AIR u32 airrt_##name(const nvidia_launch* launch, u32) { return metal::nvidia_thread{*launch}.name(); }
BUILTIN(thread_position_in_grid)
BUILTIN(thread_position_in_threadgroup)
BUILTIN(threadgroup_position_in_grid)
BUILTIN(threads_per_threadgroup)
BUILTIN(dispatch_threads_per_threadgroup)
BUILTIN(threadgroups_per_grid)
BUILTIN(threads_per_grid)
NUMBER(thread_index_in_threadgroup)
NUMBER(thread_index_in_simdgroup)
NUMBER(simdgroup_index_in_threadgroup)
NUMBER(simdgroups_per_threadgroup)
NUMBER(dispatch_simdgroups_per_threadgroup)
NUMBER(threads_per_simdgroup)
NUMBER(thread_execution_width)
AIR bool airrt_outside(const nvidia_launch* launch) { return metal::nvidia_thread{*launch}.outside(); }
