// Support for kernel wrappers: the position of a thread, and arguments of the parameter's type.
#pragma once
#include "atomic.h"
#include "internals.h"
#include "global_names.h"
#include "parameters.h"
#include "texture.h"

extern "C" {
// One threadgroup, as the scheduler describes it (runtime/runtime.h has the same layout).
struct msl_group {
  uint threads[3];       // in this group: fewer at the edge of the grid
  uint full_threads[3];  // in a full group
  uint position[3];
  uint groups[3];
  uint grid[3];
  const ulong* arguments;
};
// A row of the parameter table, which dispatch.py reads.
struct msl_parameter {
  uint index;
  uint size;      // bytes that a reference needs; 0 for a pointer
  uint numbers;   // its element type (PARAMETER_NUMBERS in element_types.py)
  uint writable;
  uint alignment;  // of an element
};
}

namespace metal {
struct msl_thread {
  const msl_group& g;
  uint x, y, z;
  uint count() const { return g.threads[0] * g.threads[1] * g.threads[2]; }
  uint full_count() const { return g.full_threads[0] * g.full_threads[1] * g.full_threads[2]; }
  uint index() const { return x + g.threads[0] * (y + g.threads[1] * z); }
  static uint3 triple(const uint* v) { return uint3(v[0], v[1], v[2]); }

  uint3 thread_position_in_grid() const {
    return uint3(g.position[0] * g.full_threads[0] + x, g.position[1] * g.full_threads[1] + y,
                 g.position[2] * g.full_threads[2] + z);
  }
  uint3 thread_position_in_threadgroup() const { return uint3(x, y, z); }
  uint3 threadgroup_position_in_grid() const { return triple(g.position); }
  uint3 threads_per_threadgroup() const { return triple(g.threads); }
  uint3 dispatch_threads_per_threadgroup() const { return triple(g.full_threads); }
  uint3 threadgroups_per_grid() const { return triple(g.groups); }
  uint3 threads_per_grid() const { return triple(g.grid); }
  uint3 grid_size() const { return triple(g.grid); }
  uint3 grid_origin() const { return uint3(0u); }
  uint thread_index_in_threadgroup() const { return index(); }
  uint thread_index_in_simdgroup() const { return index() % MSL_SIMD_WIDTH; }
  uint simdgroup_index_in_threadgroup() const { return index() / MSL_SIMD_WIDTH; }
  uint simdgroups_per_threadgroup() const { return (count() + MSL_SIMD_WIDTH - 1) / MSL_SIMD_WIDTH; }
  uint dispatch_simdgroups_per_threadgroup() const { return (full_count() + MSL_SIMD_WIDTH - 1) / MSL_SIMD_WIDTH; }
  uint threads_per_simdgroup() const { return MSL_SIMD_WIDTH; }
  uint thread_execution_width() const { return MSL_SIMD_WIDTH; }
  uint quadgroup_index_in_threadgroup() const { return index() / 4; }
  uint thread_index_in_quadgroup() const { return index() % 4; }
  uint quadgroups_per_threadgroup() const { return (count() + 3) / 4; }
  uint dispatch_quadgroups_per_threadgroup() const { return (full_count() + 3) / 4; }
};

// The running thread, for variables at program scope.
extern "C" const msl_group* msl_here(uint* index);
MSL_INLINE msl_thread msl_running() {
  uint i;
  const msl_group& g = *msl_here(&i);
  return msl_thread{g, i % g.threads[0], i / g.threads[0] % g.threads[1], i / (g.threads[0] * g.threads[1])};
}

template <class T> struct msl_numbers {  // single bytes may be of any type
  MSL_STATIC_CONSTEXPR uint value =
      !is_integral<T>::value || sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 4 : sizeof(T) == 4 ? 5 : 6;
};
template <> struct msl_numbers<half> { MSL_STATIC_CONSTEXPR uint value = 1; };
template <> struct msl_numbers<bfloat> { MSL_STATIC_CONSTEXPR uint value = 2; };
template <> struct msl_numbers<float> { MSL_STATIC_CONSTEXPR uint value = 3; };
// The element type of a pointer to T.
template <class T> constexpr uint msl_numbers_of() {
  return msl_numbers<remove_cv_t<typename msl_parts<remove_cv_t<T>>::scalar>>::value;
}

// 1 for a type that is only declared.
template <class T, size_t = sizeof(T)> constexpr uint msl_alignment(int) { return alignof(T); }
template <class T> constexpr uint msl_alignment(long) { return 1; }

template <class P> struct msl_binding {
  static_assert(sizeof(P) == 0, "a kernel parameter must be a buffer (pointer or reference) or have an attribute such "
                                "as [[thread_position_in_grid]]");
};
template <class T> struct msl_binding<T*> {
  static MSL_INLINE T* bind(ulong address) { return (T*)address; }
  static constexpr msl_parameter describe(uint index) {
    return msl_parameter{index, 0, msl_numbers_of<T>(), !is_const<T>::value, msl_alignment<T>(0)};
  }
};
template <> struct msl_binding<void*> {
  static MSL_INLINE void* bind(ulong address) { return (void*)address; }
  static constexpr msl_parameter describe(uint index) { return msl_parameter{index, 0, 0, 1, 1}; }
};
template <> struct msl_binding<const void*> {
  static MSL_INLINE const void* bind(ulong address) { return (const void*)address; }
  static constexpr msl_parameter describe(uint index) { return msl_parameter{index, 0, 0, 0, 1}; }
};
template <class T> struct msl_binding<T&> {
  static MSL_INLINE T& bind(ulong address) { return *(T*)address; }
  static constexpr msl_parameter describe(uint index) {
    return msl_parameter{index, sizeof(T), msl_numbers_of<T>(), !is_const<T>::value, alignof(T)};
  }
};

} // namespace metal

// A `threadgroup` variable is one object for all threads of the group. Groups run one after another, so it is a static
// object in its own section; the scheduler poisons the section before each group.
#ifdef MSL_CHECKED
extern "C" {
// Each threadgroup variable is listed in another section, with a gap after it to detect overruns.
struct msl_shared_variable {
  const void* address;
  ulong size;
  const char* name;
};
}
#define MSL_SHARED_END(name) \
  static __attribute__((section("msl_shared"), aligned(16), used)) char msl_gap_##name[64]; \
  static __attribute__((section("msl_variables"), used)) msl_shared_variable msl_variable_##name = { \
      (const void*)&name, sizeof(name), #name};
#else
#define MSL_SHARED_END(name)
#endif
// `shader check` redefines these as assertions about the variables that are declared so far.
#define MSL_SHARED_TOTAL(bytes)
#define MSL_SHARED static __attribute__((section("msl_shared"), aligned(16)))
extern "C" {
struct msl_sections {
  char *shared_begin, *shared_end;
  const void *variables_begin, *variables_end;
};
extern char __start_msl_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_msl_shared[] __attribute__((weak, visibility("hidden")));
#ifdef MSL_CHECKED
extern const char __start_msl_variables[] __attribute__((weak, visibility("hidden")));
extern const char __stop_msl_variables[] __attribute__((weak, visibility("hidden")));
#define MSL_SECTIONS {__start_msl_shared, __stop_msl_shared, __start_msl_variables, __stop_msl_variables}
#else
#define MSL_SECTIONS {__start_msl_shared, __stop_msl_shared, nullptr, nullptr}
#endif
}
