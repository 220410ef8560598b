// metal_uniform, metal_logging and function constants.
#pragma once
#include "base.h"

namespace metal {
MSL_INLINE bool simd_is_helper_thread() { return false; }
MSL_INLINE bool quad_is_helper_thread() { return false; }

// torch cannot set function constants, so none is ever defined.
#define is_function_constant_defined(x) false

template <class T> struct uniform {
  T value;
  uniform() = default;
  constexpr uniform(T x) : value(x) {}
  constexpr operator T() const { return value; }
};
template <class T> constexpr MSL_INLINE uniform<T> make_uniform(T x) { return uniform<T>(x); }

struct os_log {
  template <class A, class B> constexpr os_log(A, B) {}
  template <class... A> void log(A...) const {}
  template <class... A> void log_debug(A...) const {}
  template <class... A> void log_info(A...) const {}
  template <class... A> void log_error(A...) const {}
};
} // namespace metal
