namespace {

#include "shared/launch.h"

// Writes every element of a view to its place in a view of the same shape; elements are moved as numbers of their size.
void copy_elements(const Tensor& out, const Tensor& source) {
  const auto bytes = out.element_size();
  const char* moved_as = bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
  launch_elements(std::string("copy64_") + moved_as, out.numel(), out, source, packed_layout({out, source}));
}

} // namespace

Tensor channel_shuffle_mps(const Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const auto channels = self.size(1);
  TORCH_CHECK(
      channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels, " channels and ",
      groups, " groups.");
  if (self.numel() == 0) {
    return self.alias();
  }
  const auto out = at::empty(self.sizes(), self.options(), self.suggest_memory_format());
  const auto each = channels / groups;
  copy_elements(out.unflatten(1, {each, groups}), self.unflatten(1, {groups, each}).transpose(1, 2));
  return out;
}

Tensor& narrow_copy_out_mps(const Tensor& self, int64_t dim, int64_t start, int64_t length, Tensor& out) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(
      out.scalar_type() == self.scalar_type(), "narrow_copy: Expected out tensor to have dtype ", self.scalar_type(),
      ", but got ", out.scalar_type(), " instead");
  const auto size = self.size(dim);
  TORCH_CHECK_INDEX(
      -size <= start && start <= size, "start out of range (expected to be in range of [", -size, ", ", size,
      "], but got ", start, ")");
  const auto first = start < 0 ? start + size : start;
  TORCH_CHECK(
      length >= 0 && first + length <= size, "start (", first, ") + length (", length, ") exceeds dimension size (",
      size, ").");
  const auto part = self.narrow(dim, first, length);
  resize_output(out, part.sizes());
  assert_no_internal_overlap(out);
  if (out.numel() != 0) {
    copy_elements(out, get_overlap_status(out, part) == MemOverlapStatus::No ? part : part.clone());
  }
  return out;
}
