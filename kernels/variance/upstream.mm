#include <ATen/WrapDimUtilsMulti.h>

namespace {

#include "shared/grid.h"
#include "shared/launch.h"

constexpr int64_t share = 4096; // elements that one group takes
constexpr int64_t most_groups = 1024;

// One SIMD group for each of many short rows: combining the moments of two needs divisions, while the other groups wait.
int64_t group_of_many_rows(int64_t rows, int64_t length) {
  return rows >= 1024 && length <= 4096 ? std::min<int64_t>(row_group(length), 32) : row_group(length);
}

void check_dtypes(const Tensor& self, const Tensor& out, const char* name) {
  TORCH_CHECK(
      self.is_floating_point() || self.is_complex(), "std and var only support floating point and complex dtypes");
  const auto result = self.is_complex() ? kFloat : self.scalar_type();
  TORCH_CHECK(
      canCast(result, out.scalar_type()), "result type ", result, " can't be cast to the desired output type ",
      out.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self) || self.scalar_type() == kComplexFloat, name, " is not implemented for ",
      self.scalar_type(), " on MPS");
}

// What the CPU refuses by how many results there are: one of halves in a wider dtype, several in a complex one.
void check_number_of_results(const Tensor& self, const Tensor& out, int64_t results, const char* name) {
  const auto is_half = [](const Tensor& x) { return x.scalar_type() == kHalf || x.scalar_type() == kBFloat16; };
  if (results == 1) {
    TORCH_CHECK(
        self.numel() == 0 || !is_half(self) || is_half(out), "std_var_all: Unsupported dtype ", self.scalar_type());
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !out.is_complex() || self.is_complex(), name, " of ", self.scalar_type(),
        " into complex outputs is not implemented on MPS");
  }
}

// rows: the first elements of all rows; columns: the elements of one row. The numbers are the correction, and whether the
// root is taken.
void launch_spread(
    const Tensor& result,
    const Tensor& self,
    const Tensor& rows,
    const Tensor& columns,
    const std::array<float, 2>& numbers) {
  const auto groups = std::min((most_groups + rows.numel() - 1) / rows.numel(), (columns.numel() + share - 1) / share);
  const int64_t words = self.is_complex() ? 8 : 5; // of 4 bytes: `moments` of the Metal source
  const auto partial = at::empty({groups > 1 ? rows.numel() * groups * words : 1}, self.options().dtype(kFloat));
  const auto group = group_of_many_rows(rows.numel(), columns.numel());
  launch_grid(
      "variance_rows_" + scalarToMetalTypeString(self), MTLSizeMake(group * groups, rows.numel(), 1),
      MTLSizeMake(group, 1, 1), result, partial, self, packed_layout({rows}), packed_layout({columns}), numbers);
  if (groups > 1) {
    launch_rows(
        self.is_complex() ? "variance_of_shares_float2" : "variance_of_shares_float", rows.numel(), row_group(groups),
        result, partial, static_cast<uint32_t>(groups), numbers);
  }
}

// Computed in float and cast to the dtype of the output; of complex numbers it is the sum of both parts'.
Tensor& spread_out(
    const Tensor& self,
    OptionalIntArrayRef dim,
    const std::optional<Scalar>& correction,
    bool keepdim,
    Tensor& out,
    bool root) {
  const auto name = root ? "std" : "var";
  check_dtypes(self, out, name);
  const auto of_all = !dim.has_value() || dim->empty();
  const auto is_reduced = dim_list_to_bitset(of_all ? std::nullopt : dim, std::max<int64_t>(self.dim(), 1));
  DimVector shape;
  auto rows = self, columns = self;
  int64_t length = 1, results = 1;
  for (const auto d : c10::irange(self.dim())) {
    const auto size = self.size(d);
    (is_reduced[d] ? length : results) *= size;
    if (keepdim || !is_reduced[d]) {
      shape.push_back(is_reduced[d] ? 1 : size);
    }
  }
  check_number_of_results(self, out, results, name);
  resize_output(out, shape);
  assert_no_internal_overlap(out);
  const auto degrees = correction.value_or(1).toDouble();
  if ((results != 0 && length <= degrees) || self.numel() == 0) {
    TORCH_WARN(
        name,
        "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
        "divided by output numel).");
  }
  if (self.numel() == 0) {
    return out.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    auto& without = is_reduced[d] ? rows : columns;
    without = without.select(d, 0);
  }
  const bool is_result = out.scalar_type() == kFloat && out.is_contiguous() && !out.is_alias_of(self);
  const auto result = is_result ? out : at::empty(shape, self.options().dtype(kFloat), MemoryFormat::Contiguous);
  launch_spread(result, self, rows, columns, {static_cast<float>(degrees), root ? 1.0f : 0.0f});
  return is_result ? out : out.copy_(result);
}

} // namespace

Tensor& std_correction_out_mps(
    const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim, Tensor& out) {
  return spread_out(self, dim, correction, keepdim, out, /*root=*/true);
}

Tensor& var_correction_out_mps(
    const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim, Tensor& out) {
  return spread_out(self, dim, correction, keepdim, out, /*root=*/false);
}
