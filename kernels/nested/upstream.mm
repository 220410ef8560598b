namespace {

#include "shared/launch.h"

constexpr int64_t vector_bytes = 16;

// The offsets as contiguous int64, of which there is one more than items.
Tensor borders_of(const Tensor& x, TensorList offsets, const char* name) {
  TORCH_CHECK(offsets.size() == 1, name, "(): only a single jagged dim is supported for now");
  const auto& borders = offsets[0];
  TORCH_CHECK(borders.dim() == 1, name, "(): expected 1D offsets, but got offsets.dim() == ", borders.dim());
  TORCH_CHECK(
      x.dim() != 0 && borders.numel() != 0, name, "(): expected at least one offset, and values with a dimension");
  TORCH_CHECK(
      isIntegralType(borders.scalar_type(), /*includeBool=*/false), name, "(): expected offsets that are integers");
  TORCH_CHECK(borders.device() == x.device(), name, "(): expected offsets on ", x.device());
  return borders.to(kLong).contiguous();
}

// The unsigned integers that are moved: those of the element's size, or 16 bytes where all rows consist of such.
std::string moved_as(const Tensor& padded, const Tensor& values, int64_t inner) {
  const int64_t lanes = vector_bytes / values.element_size();
  if (inner % lanes == 0 && padded.storage_offset() % lanes == 0 && values.storage_offset() % lanes == 0) {
    return "uint4";
  }
  switch (values.element_size()) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

// `struct jagged` of the Metal source: items, positions, what is moved of a row, and the rows of the values.
std::array<int64_t, 4> geometry_of(const Tensor& padded, const Tensor& values, const std::string& type) {
  const auto inner = c10::multiply_integers(values.sizes().slice(1));
  const auto lanes = type == "uint4" ? vector_bytes / values.element_size() : 1;
  return {padded.size(0), padded.size(1), inner / lanes, values.size(0)};
}

} // namespace

bool _nested_tensor_from_mask_left_aligned_mps(const Tensor& t, const Tensor& mask) {
  TORCH_CHECK(
      mask.scalar_type() == kBool, "Expected mask to be of ScalarType Bool, but got ", mask.scalar_type(), " instead.");
  TORCH_CHECK(mask.dim() == 2, "Padding mask should be 2D");
  TORCH_CHECK(t.dim() == 3, "Input should be a 3D tensor, N * L * D");
  TORCH_CHECK(t.sizes().slice(0, 2) == mask.sizes(), "Mask size should match input size");
  const auto lengths = mask.sum(1, /*keepdim=*/true);
  return at::equal(mask, at::arange(mask.size(1), lengths.options()).lt(lengths));
}

Tensor _jagged_to_padded_dense_forward_mps(
    const Tensor& values, TensorList offsets, IntArrayRef max_lengths, const double padding_value) {
  const auto borders = borders_of(values, offsets, "_jagged_to_padded_dense_forward");
  TORCH_CHECK(
      max_lengths.size() == 1, "_jagged_to_padded_dense_forward(): only a single jagged dim is supported for now");
  TORCH_CHECK_NOT_IMPLEMENTED(
      !values.is_complex(), "_jagged_to_padded_dense_forward is not implemented for ", values.scalar_type(), " on MPS");
  DimVector shape{borders.size(0) - 1, max_lengths[0]};
  shape.append(values.sizes().slice(1).begin(), values.sizes().slice(1).end());
  const auto padded = at::empty(shape, values.options());
  if (padded.numel() != 0) {
    const auto rows = values.contiguous();
    const auto type = moved_as(padded, rows, c10::multiply_integers(rows.sizes().slice(1)));
    const auto geometry = geometry_of(padded, rows, type);
    const auto padding = at::full({vector_bytes / values.element_size()}, padding_value, values.options());
    launch_elements(
        "jagged_to_padded_" + type, geometry[0] * geometry[1] * geometry[2], padded, rows, borders, geometry, padding,
        getCurrentMPSStream()->getErrorBuffer());
  }
  return padded;
}

Tensor _padded_dense_to_jagged_forward_mps(const Tensor& dense, TensorList offsets, std::optional<int64_t> total_L) {
  const auto borders = borders_of(dense, offsets, "_padded_dense_to_jagged_forward");
  TORCH_CHECK(
      dense.dim() >= 2,
      "_padded_dense_to_jagged_forward(): expected padded dim >= 2, but padded.dim() == ", dense.dim());
  const auto items = borders.size(0) - 1;
  TORCH_CHECK_INDEX(
      items <= dense.size(0), "_padded_dense_to_jagged_forward(): ", items + 1, " offsets for ", dense.size(0),
      " items");
  DimVector shape(dense.sizes().slice(1));
  shape[0] = total_L.has_value() ? *total_L : borders[items].item<int64_t>();
  const auto values = at::empty(shape, dense.options());
  const auto padded = dense.narrow(0, 0, items).contiguous();
  if (padded.numel() != 0) {
    const auto type = moved_as(padded, values, c10::multiply_integers(values.sizes().slice(1)));
    const auto geometry = geometry_of(padded, values, type);
    launch_elements(
        "padded_to_jagged_" + type, geometry[0] * geometry[1] * geometry[2], values, padded, borders, geometry,
        getCurrentMPSStream()->getErrorBuffer());
  } else {
    TORCH_CHECK(
        borders[items].item<int64_t>() == shape[0],
        "_padded_dense_to_jagged_forward(): final offset should match total_L value");
  }
  return values;
}
