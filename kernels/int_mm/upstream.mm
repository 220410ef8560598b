namespace {

#include "shared/grid.h"

constexpr int64_t tile = 64, side = 16; // of the results of a group, and of its threads

void check_operands(const Tensor& self, const Tensor& mat2) {
  TORCH_CHECK(self.dim() == 2, "int_mm_out_mps: Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK_INDEX(mat2.dim() != 1, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  TORCH_CHECK(mat2.dim() == 2, "int_mm_out_mps: Expected mat2 to be of dimension 2 but got ", mat2.dim());
  TORCH_CHECK(
      self.size(1) == mat2.size(0), "int_mm_out_mps: self.size(1) needs to match mat2.size(0) but got ", self.size(1),
      " and ", mat2.size(0));
  TORCH_CHECK(
      self.scalar_type() == kChar || self.scalar_type() == kByte,
      "int_mm_out_mps: Expected self dtype to be int8 or uint8 but got ", self.scalar_type());
  TORCH_CHECK(
      mat2.scalar_type() == kChar, "int_mm_out_mps: Expected mat2 dtype to be of type int8 but got ",
      mat2.scalar_type());
}

} // namespace

Tensor& _int_mm_out_mps(const Tensor& self, const Tensor& mat2, Tensor& out) {
  check_operands(self, mat2);
  TORCH_CHECK(
      out.scalar_type() == kInt, "int_mm_out_mps: Expected result dtype to be of type kInt but got ",
      out.scalar_type());
  const std::array<int64_t, 2> shape = {self.size(0), mat2.size(1)};
  for (const auto d : c10::irange(2)) {
    const auto found = d < out.dim() ? out.size(d) : 0;
    TORCH_CHECK(
        found == shape[d], "int_mm_out_mps: Expected result.size(", d, ") to be ", shape[d], " but got ", found);
  }
  TORCH_CHECK(out.dim() == 2, "int_mm_out_mps: Expected result to be of dimension 2 but got ", out.dim());
  TORCH_CHECK(out.is_contiguous(), "int_mm_out_mps: Expected result to be contiguous.");
  if (out.numel() == 0 || self.size(1) == 0) {
    return out.zero_(); // an empty operand may begin behind the end of its memory
  }
  const std::array<int64_t, 7> sizes = {shape[0],       shape[1],       self.size(1),  self.stride(0),
                                        self.stride(1), mat2.stride(0), mat2.stride(1)};
  const auto threads = [](int64_t length) { return (length + tile - 1) / tile * side; };
  launch_grid(
      "int_mm_" + scalarToMetalTypeString(self), MTLSizeMake(threads(shape[1]), threads(shape[0]), 1),
      MTLSizeMake(side, side, 1), out, self, mat2, sizes);
  return out;
}

Tensor _int_mm_mps(const Tensor& self, const Tensor& mat2) {
  check_operands(self, mat2);
  auto out = at::empty({self.size(0), mat2.size(1)}, self.options().dtype(kInt));
  return _int_mm_out_mps(self, mat2, out);
}
