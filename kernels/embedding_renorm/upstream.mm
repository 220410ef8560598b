namespace {

#include "shared/launch.h"

constexpr int64_t largest_32_bit = std::numeric_limits<int32_t>::max();

// Up to where the elements of a row lie behind its first one, and how many there are.
int64_t reach_of_row(const Tensor& self) { return std::max(self.size(1), (self.size(1) - 1) * self.stride(1)); }

// How many elements a thread can move at a time: those of 16 bytes, where rows consist of and start at such.
int64_t neighbours_in(const Tensor& self) {
  const int64_t lanes = 16 / self.element_size();
  const bool are_beside = self.stride(1) == 1 && reach_of_row(self) <= largest_32_bit;
  const bool is_aligned =
      self.size(1) % lanes == 0 && self.stride(0) % lanes == 0 && self.storage_offset() % lanes == 0;
  return are_beside && is_aligned ? lanes : 1;
}

std::string form_for(const Tensor& self, int64_t neighbours) {
  if (neighbours > 1) {
    return "vectors_";
  }
  return reach_of_row(self) <= largest_32_bit ? "" : "64_";
}

// One SIMD group for each of many short rows: none waits for another.
int64_t group_for(int64_t rows, int64_t length) {
  constexpr int64_t many_rows = 1024, short_row = 4096;
  return rows >= many_rows && length <= short_row ? 32 : row_group(length);
}

} // namespace

Tensor& embedding_renorm__mps(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  TORCH_CHECK(
      self.dim() == 2, "Expected 2-dimensional tensor, but got ", self.dim(),
      "-dimensional tensor for argument #1 'self' (while checking arguments for embedding_renorm_)");
  TORCH_CHECK(
      indices.scalar_type() == kLong || indices.scalar_type() == kInt, "Expected 'indices' to be Long or Int, but got ",
      indices.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self) || self.scalar_type() == kComplexFloat, "embedding_renorm_ is not implemented for ",
      self.scalar_type(), " on MPS");
  assert_no_internal_overlap(self);
  if (indices.numel() == 0 || self.numel() == 0) {
    return self;
  }
  const auto ordered = std::get<0>(at::sort(indices.reshape(-1).to(kLong)));
  const std::array<float, 2> norm = {static_cast<float>(max_norm), static_cast<float>(norm_type)};
  const std::array<int64_t, 4> geometry = {self.size(1), self.size(0), self.stride(0), self.stride(1)};
  const int64_t neighbours = norm_type == 2 ? neighbours_in(self) : 1;
  const auto form = form_for(self, neighbours);
  launch_rows(
      "embedding_renorm_" + form + scalarToMetalTypeString(self), ordered.numel(),
      group_for(ordered.numel(), self.size(1) / neighbours), self, ordered, norm, geometry,
      getCurrentMPSStream()->getErrorBuffer());
  return self;
}
