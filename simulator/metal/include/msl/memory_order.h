// Memory orders, scopes and flags of barriers and atomic operations.
#pragma once
#include "base.h"

namespace metal {
enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
  mem_device_and_threadgroup = 3
};
MSL_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }
MSL_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) { return (mem_flags)((uint)a & (uint)b); }
enum MSL_NAME(memory_order) {
  MSL_NAME(memory_order_relaxed) = 0,
  MSL_NAME(memory_order_acquire) = 2,
  MSL_NAME(memory_order_release) = 3,
  MSL_NAME(memory_order_acq_rel) = 4,
  MSL_NAME(memory_order_seq_cst) = 5
};
enum thread_scope {
  thread_scope_thread,
  thread_scope_simdgroup,
  thread_scope_threadgroup,
  thread_scope_device,
};
} // namespace metal
