// Support for entry points on an NVIDIA GPU: the position of a thread, and arguments of the parameter's type.
#pragma once
#include "atomic.h"
#include "matrix.h"
#include "msl/global_names.h"
#include "msl/parameters.h"
#include "msl/texture.h"

extern "C" {
// A launch (simulator/nvidia/launching.py has the same layout). Threadgroups at the edge of the grid are smaller; if a
// kernel depends on that, each kind of edge is a separate launch, whose groups begin at `first_group`.
struct nvidia_launch {
  uint grid[3];         // threads of the grid
  uint full_group[3];   // threads of a full group
  uint groups[3];       // groups of the grid
  uint first_group[3];  // the first group of this launch
};
}

namespace metal {
// A thread of a group. Groups at an edge have only their own threads, or threads outside of the grid return at once if
// the kernel does not read the size of the group.
struct nvidia_thread {
  const nvidia_launch& launch;
  static MSL_INLINE uint3 place() {
    return uint3(__nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(), __nvvm_read_ptx_sreg_tid_z());
  }
  static MSL_INLINE uint3 size() {
    return uint3(__nvvm_read_ptx_sreg_ntid_x(), __nvvm_read_ptx_sreg_ntid_y(), __nvvm_read_ptx_sreg_ntid_z());
  }
  static MSL_INLINE uint3 triple(const uint* v) { return uint3(v[0], v[1], v[2]); }
  static MSL_INLINE uint product(uint3 v) { return v.x * v.y * v.z; }
  static MSL_INLINE uint simdgroups(uint threads) { return (threads + MSL_SIMD_WIDTH - 1) / MSL_SIMD_WIDTH; }
  MSL_INLINE bool outside() const {
    uint3 at = thread_position_in_grid();
    return at.x >= launch.grid[0] || at.y >= launch.grid[1] || at.z >= launch.grid[2];
  }

  MSL_INLINE uint3 threadgroup_position_in_grid() const {
    return triple(launch.first_group) +
        uint3(__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), __nvvm_read_ptx_sreg_ctaid_z());
  }
  MSL_INLINE uint3 thread_position_in_grid() const {
    return threadgroup_position_in_grid() * triple(launch.full_group) + place();
  }
  MSL_INLINE uint3 thread_position_in_threadgroup() const { return place(); }
  MSL_INLINE uint3 threads_per_threadgroup() const { return size(); }
  MSL_INLINE uint3 dispatch_threads_per_threadgroup() const { return triple(launch.full_group); }
  MSL_INLINE uint3 threadgroups_per_grid() const { return triple(launch.groups); }
  MSL_INLINE uint3 threads_per_grid() const { return triple(launch.grid); }
  MSL_INLINE uint3 grid_size() const { return triple(launch.grid); }
  MSL_INLINE uint3 grid_origin() const { return uint3(0u); }
  MSL_INLINE uint thread_index_in_threadgroup() const {
    return place().x + size().x * (place().y + size().y * place().z);
  }
  MSL_INLINE uint thread_index_in_simdgroup() const { return nvidia_lane(); }
  MSL_INLINE uint simdgroup_index_in_threadgroup() const { return thread_index_in_threadgroup() / MSL_SIMD_WIDTH; }
  MSL_INLINE uint simdgroups_per_threadgroup() const { return simdgroups(product(size())); }
  MSL_INLINE uint dispatch_simdgroups_per_threadgroup() const {
    return simdgroups(product(dispatch_threads_per_threadgroup()));
  }
  MSL_INLINE uint threads_per_simdgroup() const { return MSL_SIMD_WIDTH; }
  MSL_INLINE uint thread_execution_width() const { return MSL_SIMD_WIDTH; }
  MSL_INLINE uint quadgroup_index_in_threadgroup() const { return thread_index_in_threadgroup() / 4; }
  MSL_INLINE uint thread_index_in_quadgroup() const { return thread_index_in_threadgroup() % 4; }
  MSL_INLINE uint quadgroups_per_threadgroup() const { return (product(size()) + 3) / 4; }
  MSL_INLINE uint dispatch_quadgroups_per_threadgroup() const {
    return (product(dispatch_threads_per_threadgroup()) + 3) / 4;
  }
};

// A row of the buffer table: the bytes that a reference reads (0 for a pointer), and whether it is writable.
template <class P> struct nvidia_binding {
  static_assert(
      sizeof(P) == 0,
      "a kernel parameter must be a buffer (pointer or reference) or have an attribute such "
      "as [[thread_position_in_grid]]");
};
template <class T> struct nvidia_binding<T*> {
  static MSL_INLINE T* bind(void* address) { return (T*)address; }
  static constexpr uint size = 0, writable = !is_const<T>::value;
};
template <class T> struct nvidia_binding<T&> {
  static MSL_INLINE T& bind(void* address) { return *(T*)address; }
  static constexpr uint size = sizeof(T), writable = !is_const<T>::value;
};

} // namespace metal

#define MSL_SHARED static __attribute__((shared))
#define MSL_SHARED_END(name)
#define MSL_SHARED_TOTAL(bytes)
