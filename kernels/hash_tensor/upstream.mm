#include <ATen/WrapDimUtils.h>

namespace {

#include "shared/grid.h"
#include "shared/launch.h"

constexpr int64_t share = 4096; // elements that one group combines
constexpr int64_t most_groups = 1024;

// rows: the first elements of all rows; columns: the elements of one row, in one dimension where there are no gaps.
void hash(const Tensor& out, const Tensor& x, const Tensor& rows, const Tensor& columns, int64_t groups) {
  const auto group = row_group(columns.numel());
  const int64_t past = x.storage_offset() % (16 / x.element_size()); // elements behind a multiple of 16 bytes
  launch_grid(
      "hash_rows_" + scalarToMetalTypeString(x), MTLSizeMake(group * groups, rows.numel(), 1), MTLSizeMake(group, 1, 1),
      out, x, packed_layout({rows}), packed_layout({columns}), past);
}

} // namespace

TORCH_IMPL_FUNC(hash_tensor_out_mps)
(const Tensor& self, IntArrayRef dim, bool keepdim, int64_t mode, const Tensor& out) {
  TORCH_CHECK(mode == 0, "Unknown hash_tensor mode: ", mode);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !self.is_complex() && self.scalar_type() != kDouble, "hash_tensor is not implemented for ", self.scalar_type(),
      " on MPS");
  if (out.numel() == 0) {
    return;
  }
  std::vector<bool> is_reduced(std::max<int64_t>(self.dim(), 1), dim.empty());
  for (const auto d : dim) {
    is_reduced[maybe_wrap_dim(d, self.dim())] = true;
  }
  auto rows = self, columns = self;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    auto& without = is_reduced[d] ? rows : columns;
    without = without.select(d, 0);
  }
  if (columns.is_contiguous()) {
    columns = columns.view({-1});
  }
  const auto result = out.is_contiguous() ? out : at::empty_like(out, MemoryFormat::Contiguous);
  const auto groups = std::min(most_groups, (columns.numel() + share - 1) / share);
  if (groups == 1) {
    hash(result, self, rows, columns, groups);
  } else {
    const auto partial = at::empty({rows.numel(), groups}, self.options().dtype(kLong));
    hash(partial, self, rows, columns, groups);
    hash(result, partial, partial.select(1, 0), partial.select(0, 0), 1);
  }
  if (!result.is_same(out)) {
    out.copy_(result);
  }
}
