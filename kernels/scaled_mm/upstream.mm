namespace {

#include "shared/grid.h"

constexpr int64_t tile = 64, side = 16; // of the results of a group, and of its threads
constexpr int64_t tensorwise = 0, rowwise = 1; // of torch.nn.functional.ScalingType, what the CPU takes

// What the Metal source calls an 8-bit format; empty for other dtypes.
std::string format_of(ScalarType dtype) {
  switch (dtype) {
    case kFloat8_e4m3fn:
      return "e4m3fn";
    case kFloat8_e5m2:
      return "e5m2";
    case kFloat8_e4m3fnuz:
      return "e4m3fnuz";
    case kFloat8_e5m2fnuz:
      return "e5m2fnuz";
    default:
      return "";
  }
}

// The same of a result's dtype.
std::string result_of(const Tensor& out) {
  switch (out.scalar_type()) {
    case kFloat:
    case kHalf:
    case kBFloat16:
      return scalarToMetalTypeString(out);
    case kFloat8_e4m3fn:
    case kFloat8_e5m2:
      return format_of(out.scalar_type());
    default:
      return "";
  }
}

bool has_unsigned_zero(const std::string& format) { return format == "e4m3fnuz" || format == "e5m2fnuz"; }

void check_operands(const Tensor& self, const Tensor& mat2, const std::optional<Tensor>& bias) {
  TORCH_CHECK(self.dim() == 2, "mat1 must be a matrix");
  TORCH_CHECK(mat2.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(
      self.size(1) == mat2.size(0), "mat_a and mat_b shapes cannot be multiplied (", self.size(0), "x", self.size(1),
      " and ", mat2.size(0), "x", mat2.size(1), ")");
  TORCH_CHECK(
      !bias || bias->numel() == mat2.size(1), "Bias must be size ", mat2.size(1), " but got ",
      bias ? bias->numel() : 0);
}

void check_scaling(bool valid) {
  TORCH_CHECK_VALUE(
      valid,
      "Invalid scaling configuration.\n"
      "- TensorWise: a and b are float8, both scales are single float32 numbers.\n"
      "- RowWise: a and b are float8, the scales are float32 of the shapes (rows of a, 1) and (1, columns of b).\n");
}

// One number each, or a column of one for each row and a row of one for each column, in float32.
void check_scales(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b) {
  const bool narrow = !format_of(self.scalar_type()).empty() && !format_of(mat2.scalar_type()).empty();
  const bool single = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool fits =
      scale_a.sizes() == IntArrayRef({self.size(0), 1}) && scale_b.sizes() == IntArrayRef({1, mat2.size(1)});
  check_scaling(narrow && (single || fits) && scale_a.scalar_type() == kFloat && scale_b.scalar_type() == kFloat);
}

void check_device(const Tensor& self, const Tensor& other, const char* name) {
  TORCH_CHECK(
      other.device() == self.device(),
      "Expected all tensors to be on the same device, but found at least two devices, ", self.device(), " and ",
      other.device(), "! (when checking argument ", name, " of _scaled_mm)");
}

// Metal has no such type: kernels take the bytes.
Tensor bytes_of(const Tensor& x) { return x.element_size() == 1 ? x.view(kByte) : x; }

} // namespace

// `scale_result` divides results of 8 bits alone, as on the CPU.
Tensor& _scaled_mm_out_mps(
    const Tensor& self,
    const Tensor& mat2,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const std::optional<Tensor>& bias,
    const std::optional<Tensor>& scale_result,
    std::optional<ScalarType> out_dtype,
    bool use_fast_accum,
    Tensor& out) {
  check_operands(self, mat2, bias);
  TORCH_CHECK_VALUE(!out_dtype || *out_dtype == out.scalar_type(), "out_dtype must match output matrix type");
  check_scales(self, mat2, scale_a, scale_b);
  check_device(self, mat2, "mat2");
  check_device(self, scale_a, "scale_a");
  check_device(self, scale_b, "scale_b");
  if (bias) {
    check_device(self, *bias, "bias");
  }
  if (scale_result) {
    check_device(self, *scale_result, "scale_result");
  }
  check_device(self, out, "out");
  const auto left = format_of(self.scalar_type()), right = format_of(mat2.scalar_type()), result = result_of(out);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !result.empty() && (left == right || !(has_unsigned_zero(left) || has_unsigned_zero(right))),
      "_scaled_mm is not implemented for ", self.scalar_type(), " and ", mat2.scalar_type(), " into ",
      out.scalar_type(), " on MPS");
  for (const auto& source : {self, mat2, scale_a, scale_b}) {
    assert_no_overlap(out, source);
  }
  resize_output(out, {self.size(0), mat2.size(1)});
  assert_no_internal_overlap(out);
  if (out.numel() == 0) {
    return out;
  }
  const bool divides = scale_result && !format_of(out.scalar_type()).empty();
  // Another number is passed where there is none: making one is a launch.
  const auto addends = bias ? bias->reshape(-1).to(kFloat).contiguous() : scale_b.contiguous();
  const auto divisor = divides ? scale_result->to(kFloat) : scale_b.contiguous();
  const std::array<int64_t, 13> sizes = {out.size(0),    out.size(1),         self.size(1),        self.stride(0),
                                         self.stride(1), mat2.stride(0),      mat2.stride(1),      out.stride(0),
                                         out.stride(1),  scale_a.numel() > 1, scale_b.numel() > 1, bias.has_value(),
                                         divides};
  const auto threads = [](int64_t length) { return (length + tile - 1) / tile * side; };
  launch_grid(
      "scaled_mm_" + left + "_" + right + "_" + result, MTLSizeMake(threads(out.size(1)), threads(out.size(0)), 1),
      MTLSizeMake(side, side, 1), bytes_of(out), bytes_of(self), bytes_of(mat2), scale_a.contiguous(),
      scale_b.contiguous(), addends, divisor, sizes);
  return out;
}

Tensor _scaled_mm_mps(
    const Tensor& self,
    const Tensor& mat2,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const std::optional<Tensor>& bias,
    const std::optional<Tensor>& scale_result,
    std::optional<ScalarType> out_dtype,
    bool use_fast_accum) {
  auto out = at::empty({0}, self.options().dtype(out_dtype.value_or(self.scalar_type())));
  return _scaled_mm_out_mps(self, mat2, scale_a, scale_b, bias, scale_result, std::nullopt, use_fast_accum, out);
}

// The recipes that the CPU takes: one scale, or one for each row and column.
Tensor& _scaled_mm_v2_out_mps(
    const Tensor& self,
    const Tensor& mat2,
    TensorList scale_a,
    IntArrayRef recipe_a,
    IntArrayRef swizzle_a,
    TensorList scale_b,
    IntArrayRef recipe_b,
    IntArrayRef swizzle_b,
    const std::optional<Tensor>& bias,
    std::optional<ScalarType> out_dtype,
    IntArrayRef contraction_dim,
    bool use_fast_accum,
    Tensor& out) {
  const auto along = contraction_dim.empty() ? 1 : contraction_dim[0];
  const auto against = contraction_dim.empty() ? 0 : contraction_dim[1];
  TORCH_CHECK_VALUE(
      self.dim() != 2 || mat2.dim() != 2 || self.size(along) == mat2.size(against),
      "mat_a and mat_b shapes cannot be multiplied (", self.sizes(), " and ", mat2.sizes(), ")");
  const auto is_set = [](int64_t swizzle) { return swizzle != 0; };
  TORCH_CHECK_VALUE(
      std::none_of(swizzle_a.begin(), swizzle_a.end(), is_set) &&
          std::none_of(swizzle_b.begin(), swizzle_b.end(), is_set),
      "MPS does not support swizzle.");
  check_scaling(
      scale_a.size() == 1 && scale_b.size() == 1 && recipe_a.size() == 1 && recipe_b.size() == 1 &&
      recipe_a[0] == recipe_b[0] && (recipe_a[0] == tensorwise || recipe_a[0] == rowwise) &&
      (recipe_a[0] == rowwise || (scale_a[0].numel() <= 1 && scale_b[0].numel() <= 1)));
  return _scaled_mm_out_mps(self, mat2, scale_a[0], scale_b[0], bias, std::nullopt, out_dtype, use_fast_accum, out);
}

Tensor _scaled_mm_v2_mps(
    const Tensor& self,
    const Tensor& mat2,
    TensorList scale_a,
    IntArrayRef recipe_a,
    IntArrayRef swizzle_a,
    TensorList scale_b,
    IntArrayRef recipe_b,
    IntArrayRef swizzle_b,
    const std::optional<Tensor>& bias,
    std::optional<ScalarType> out_dtype,
    IntArrayRef contraction_dim,
    bool use_fast_accum) {
  auto out = at::empty({0}, self.options().dtype(out_dtype.value_or(self.scalar_type())));
  return _scaled_mm_v2_out_mps(
      self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, std::nullopt, contraction_dim,
      use_fast_accum, out);
}
