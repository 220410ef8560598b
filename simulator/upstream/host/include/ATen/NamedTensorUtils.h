// Named tensors, which torch removed: host code of older releases still calls these functions. They do nothing.
#pragma once
#include <ATen/core/Tensor.h>
namespace at {
struct NoNamesGuard {
  NoNamesGuard() {}
  ~NoNamesGuard() {}
};
namespace namedinference {
template <typename... Arguments>
int compute_broadcast_outnames(Arguments&&...) {
  return 0;
}
template <typename... Arguments>
int broadcast_to_outnames(Arguments&&...) {
  return 0;
}
template <typename... Arguments>
void propagate_names_if_nonempty(Arguments&&...) {}
template <typename... Arguments>
void propagate_names(Arguments&&...) {}
} // namespace namedinference
} // namespace at
