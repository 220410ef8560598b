#include <ATen/WrapDimUtils.h>

namespace {

#include "shared/grid.h"

constexpr int64_t most_threads = 256; // what the kernels have scratch for
constexpr int64_t most_columns = 32;

// Autograd hands over what was not given as a tensor that is none.
bool is_given(const std::optional<Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

// Where each segment begins and the last one ends, contiguous; and the axis counted from the front.
std::pair<Tensor, int64_t> borders_of(
    const Tensor& data, const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets, int64_t axis) {
  const bool by_offsets = is_given(offsets);
  TORCH_CHECK(by_offsets || is_given(lengths), "segment_reduce(): Either lengths or offsets must be defined.");
  const auto& given = by_offsets ? *offsets : *lengths;
  axis = maybe_wrap_dim(axis, data.dim(), /*wrap_scalar=*/false);
  TORCH_CHECK(
      axis == given.dim() - 1,
      "segment_reduce(): Expected axis to be the last dimension of lengths or offsets but got ", axis, ".");
  TORCH_CHECK_NOT_IMPLEMENTED(
      given.scalar_type() == kLong || given.scalar_type() == kInt, "segment_reduce takes no lengths or offsets of ",
      given.scalar_type());
  TORCH_CHECK(
      given.sizes().slice(0, axis) == data.sizes().slice(0, axis),
      "segment_reduce(): Expected lengths or offsets of the sizes of data before the axis");
  if (by_offsets) {
    TORCH_CHECK(given.size(-1) != 0, "Trying to create tensor with negative dimension -1: [-1]");
    return {given.to(kLong).contiguous(), axis};
  }
  const auto ends = given.cumsum(-1, kLong);
  DimVector first(ends.sizes());
  first.back() = 1;
  return {at::cat({ends.new_zeros(first), ends}, -1), axis};
}

int64_t number_of(std::string_view reduce) {
  if (reduce == "sum") {
    return 0;
  }
  if (reduce == "mean") {
    return 1;
  }
  if (reduce == "max" || reduce == "amax") {
    return 2;
  }
  if (reduce == "min" || reduce == "amin") {
    return 3;
  }
  TORCH_CHECK(reduce == "prod", "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return 4;
}

// `struct segments` of the Metal source: segments and numbers a row, inner elements, the reduction, what is reported.
std::array<int64_t, 5> geometry_of(
    const Tensor& data, const Tensor& borders, int64_t axis, std::string_view reduce, bool is_checked) {
  const auto reduction = number_of(reduce);
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(data), "segment_reduce is not implemented for ", data.scalar_type(), " on MPS");
  int64_t inner = 1;
  for (const auto d : c10::irange(axis + 1, data.dim())) {
    inner *= data.size(d);
  }
  return {borders.size(-1) - 1, data.size(axis), inner, reduction, is_checked};
}

int64_t power_of_two(int64_t x) {
  int64_t power = 1;
  while (power < x) {
    power *= 2;
  }
  return power;
}

// All threads, in groups wide enough for the inner elements and high enough for segments of average length.
std::pair<MTLSize, MTLSize> grid_of(int64_t elements, const std::array<int64_t, 5>& geometry) {
  const auto segments = geometry[0], size = geometry[1], inner = geometry[2];
  const auto width = std::min(most_columns, power_of_two(inner));
  const auto height = std::min(most_threads / width, power_of_two((size + segments - 1) / segments));
  const auto columns = (inner + width - 1) / width * width;
  return {MTLSizeMake(columns, height, elements / inner), MTLSizeMake(width, height, 1)};
}

std::array<float, 2> initial_of(const std::optional<Scalar>& initial) {
  return {initial.has_value() ? initial->to<float>() : 0.0f, initial.has_value() ? 1.0f : 0.0f};
}

} // namespace

Tensor segment_reduce_mps(
    const Tensor& data,
    std::string_view reduce,
    const std::optional<Tensor>& lengths,
    const std::optional<Tensor>& indices,
    const std::optional<Tensor>& offsets,
    int64_t axis,
    bool unsafe,
    const std::optional<Scalar>& initial) {
  TORCH_CHECK(!is_given(indices), "segment_reduce(): indices based reduction is not supported yet.");
  const auto [borders, dim] = borders_of(data, lengths, offsets, axis);
  const bool is_checked = !is_given(offsets) && !unsafe;
  TORCH_CHECK(
      !is_checked || lengths->numel() != 0,
      "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
      "argument.");
  const auto geometry = geometry_of(data, borders, dim, reduce, is_checked);
  DimVector shape(data.sizes());
  shape[dim] = geometry[0];
  const auto out = at::empty(shape, data.options());
  if (out.numel() != 0) {
    const auto [threads, group] = grid_of(out.numel(), geometry);
    launch_grid(
        "segment_reduce_" + scalarToMetalTypeString(data), threads, group, out, data.contiguous(), borders,
        initial_of(initial), geometry, getCurrentMPSStream()->getErrorBuffer());
  }
  return out;
}

Tensor _segment_reduce_backward_mps(
    const Tensor& grad,
    const Tensor& output,
    const Tensor& data,
    std::string_view reduce,
    const std::optional<Tensor>& lengths,
    const std::optional<Tensor>& offsets,
    int64_t axis,
    const std::optional<Scalar>& initial) {
  const auto [borders, dim] = borders_of(data, lengths, offsets, axis);
  const auto geometry = geometry_of(data, borders, dim, reduce, /*is_checked=*/false);
  int64_t count = geometry[0] * geometry[2];
  for (const auto d : c10::irange(dim)) {
    count *= data.size(d);
  }
  for (const auto& tensor : {grad, output}) {
    TORCH_CHECK(
        tensor.scalar_type() == data.scalar_type(), "expected scalar type ", data.scalar_type(), " but found ",
        tensor.scalar_type());
    TORCH_CHECK(
        tensor.numel() >= count, "_segment_reduce_backward: expected grad and output to have ", count, " elements");
  }
  const auto gradient = at::zeros(data.sizes(), data.options());
  if (count != 0 && gradient.numel() != 0) {
    const auto [threads, group] = grid_of(output.numel(), geometry);
    launch_grid(
        "segment_reduce_backward_" + scalarToMetalTypeString(data), threads, group, gradient, grad.contiguous(),
        output.contiguous(), data.contiguous(), borders, initial_of(initial), geometry);
  }
  return gradient;
}
