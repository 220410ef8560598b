namespace {

#include "shared/grid.h"
#include "shared/launch.h"

constexpr int64_t share = 4096; // elements that one group sums
constexpr int64_t most_groups = 1024;

using Limits = std::array<int64_t, 2>; // the smallest and the largest quantized value

void check_dtype(const Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(x), "fake_quantize is not implemented for ", x.scalar_type(), " on MPS");
}

void check_range(int64_t quant_min, int64_t quant_max) {
  TORCH_CHECK(quant_min <= quant_max, "`quant_min` should be less than or equal to `quant_max`.");
}

void check_one(const Tensor& x) {
  TORCH_CHECK(x.numel() == 1, "a Tensor with ", x.numel(), " elements cannot be converted to Scalar");
}

void check_zero_point_dtype(const Tensor& zero_point) {
  const auto dtype = zero_point.scalar_type();
  TORCH_CHECK(
      dtype == kInt || dtype == kFloat || dtype == kHalf, "Zero-point must be Int32, Float or Half, found ", dtype);
}

void check_sizes(const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t axis) {
  TORCH_CHECK(scale.dim() == 1, "scale should be a 1-D tensor");
  TORCH_CHECK(zero_point.dim() == 1, "zero point should be a 1-D tensor");
  TORCH_CHECK(scale.numel() == zero_point.numel(), "scale and zero-point need to have the same dimensions");
  TORCH_CHECK_INDEX(
      -x.dim() <= axis && axis < x.dim(), "Dimension out of range (expected to be in range of [", -x.dim(), ", ",
      x.dim() - 1, "], but got ", axis, ")");
  TORCH_CHECK(scale.numel() == x.size(axis), "dimensions of scale and zero-point are not consistent with input tensor");
}

void check_axis(const Tensor& x, int64_t axis) {
  TORCH_CHECK(0 <= axis && axis < x.dim(), "`axis` must be between 0 and number of dimensions of input");
}

// What is demanded of parameters by channel.
void check_channels(
    const Tensor& x,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t axis,
    int64_t quant_min,
    int64_t quant_max) {
  TORCH_CHECK(scale.scalar_type() == kFloat, "Scale must be Float or BFloat16, found ", scale.scalar_type());
  check_zero_point_dtype(zero_point);
  check_sizes(x, scale, zero_point, axis);
  check_range(quant_min, quant_max);
  check_axis(x, axis);
  TORCH_CHECK(
      zero_point.scalar_type() != kInt || zero_point.numel() != 0,
      "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
      "argument.");
}

// The first number, in float32 and without dimensions.
Tensor first(const Tensor& x) {
  const auto number = x.select(0, 0);
  return (number.dim() == 0 ? number : number.reshape(-1).select(0, 0)).to(kFloat);
}

// One number a channel as if each element had its own.
Tensor along(const Tensor& parameters, const Tensor& x, int64_t axis) {
  DimVector shape(x.dim(), 1);
  shape[axis] = parameters.numel();
  return parameters.reshape(shape).expand(x.sizes());
}

// `enabled`: a number, or a tensor that the kernel reads.
template <typename E>
std::tuple<Tensor, Tensor> masked(
    const Tensor& x, const Tensor& scale, const Tensor& zero_point, const Limits& limits, const E& enabled) {
  check_dtype(x);
  auto out = at::empty_like(x), kept = at::empty_like(x, x.options().dtype(kBool));
  if (out.numel() != 0) {
    const auto name = "fake_quantize64_" + scalarToMetalTypeString(x) + "_" + scalarToMetalTypeString(zero_point);
    const auto layout = packed_layout({out, kept, x, scale, zero_point});
    launch_elements(name, out.numel(), out, kept, x, scale, zero_point, limits, enabled, layout);
  }
  return {out, kept};
}

Tensor without_mask(const Tensor& x, const Tensor& scale, const Tensor& zero_point, const Limits& limits) {
  check_dtype(x);
  auto out = at::empty_like(x);
  if (out.numel() != 0) {
    const auto layout = packed_layout({out, x, scale, zero_point});
    const auto name = "without_mask64_" + scalarToMetalTypeString(x);
    launch_elements(name, out.numel(), out, x, scale, zero_point, limits, layout);
  }
  return out;
}

// All in float32. bfloat16 of the first one allows it for all of them; nothing else is cast.
std::vector<Tensor> as_float32(std::vector<Tensor> tensors) {
  const bool casts = tensors[0].scalar_type() == kBFloat16;
  for (auto& tensor : tensors) {
    tensor = casts ? tensor.to(kFloat) : tensor;
    TORCH_CHECK(
        tensor.scalar_type() == kFloat, "Expected ScalarType::Float to be true, but got ", tensor.scalar_type(), ".");
  }
  return tensors;
}

// The dimensions behind the first, those of the largest strides in front: groups sum in the order of the memory.
std::vector<int64_t> order_of(const Tensor& dx) {
  std::vector<int64_t> order;
  for (const auto d : c10::irange(dx.dim() - 1)) {
    order.push_back(d);
  }
  std::stable_sort(
      order.begin(), order.end(), [&](int64_t a, int64_t b) { return dx.stride(a + 1) > dx.stride(b + 1); });
  return order;
}

// Of numbers with the channel in front: their gradient, and those of the scales and of the zero points.
std::tuple<Tensor, Tensor, Tensor> gradients(
    const Tensor& x,
    const Tensor& dy,
    const Tensor& scale,
    const Tensor& zero_point,
    const Limits& limits,
    double factor) {
  const auto dx = at::empty_like(x);
  const auto order = order_of(dx);
  const auto one = [&](const Tensor& tensor) { return tensor.select(0, 0).permute(order); };
  const auto channels = x.size(0), elements = one(x).numel();
  const auto group = row_group(elements), groups = std::min(most_groups, (elements + share - 1) / share);
  const auto partial = at::empty({2, channels, groups}, x.options());
  const std::array<int64_t, 3> strides = {dx.stride(0), x.stride(0), dy.stride(0)};
  launch_grid(
      "learnable_backward", MTLSizeMake(group * groups, channels, 1), MTLSizeMake(group, 1, 1), dx, partial, x, dy,
      scale.contiguous(), zero_point.contiguous(), limits, static_cast<float>(factor), strides,
      packed_layout({one(dx), one(x), one(dy)}));
  const std::array<int64_t, 1> last = {1};
  return {dx, partial.select(0, 0).sum(IntArrayRef(last)), partial.select(0, 1).sum(IntArrayRef(last))};
}

// The smallest and the largest number of each channel, in float32.
std::pair<Tensor, Tensor> extremes(const Tensor& x, int64_t channels, const Tensor& observes) {
  if (x.numel() != 0) {
    const auto rows = x.reshape({channels, -1});
    const std::array<int64_t, 1> last = {1};
    return {rows.amin(last).to(kFloat), rows.amax(last).to(kFloat)};
  }
  TORCH_CHECK(
      observes.item<int64_t>() == 0,
      "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  const auto none = at::zeros({channels}, x.options().dtype(kFloat));
  return {none, none.clone()};
}

// Check what is observed, give it its size where it has none yet, and return the number of channels.
int64_t prepare_state(const Tensor& x, const std::array<Tensor, 4>& state, int64_t axis, bool per_row) {
  if (!per_row) {
    std::for_each(state.begin(), state.end(), check_one);
    return 1;
  }
  TORCH_CHECK(axis == 0, "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0");
  TORCH_CHECK_INDEX(x.dim() >= 2, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  const auto channels = x.size(0);
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  constexpr std::array<double, 4> start = {infinity, -infinity, 1.0, 0.0};
  for (const auto i : c10::irange(state.size())) {
    if (state[i].numel() == 0 && (state[0].numel() == 0 || state[0].numel() == channels)) {
      state[i].resize_({channels}).fill_(start[i]);
    }
  }
  check_zero_point_dtype(state[3]);
  for (const auto& tensor : state) {
    TORCH_CHECK(tensor.numel() == channels, "dimensions of scale and zero-point are not consistent with input tensor");
  }
  return channels;
}

} // namespace

std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask_mps(
    const Tensor& self,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t axis,
    int64_t quant_min,
    int64_t quant_max) {
  check_channels(self, scale, zero_point, axis, quant_min, quant_max);
  const Limits limits = {quant_min, quant_max};
  if (zero_point.scalar_type() == kInt) {
    launch_elements(
        "check_zero_points", zero_point.numel(), zero_point.contiguous(), limits,
        getCurrentMPSStream()->getErrorBuffer());
  }
  return masked(self, along(scale, self, axis), along(zero_point, self, axis), limits, int64_t(1));
}

Tensor _fake_quantize_learnable_per_tensor_affine_mps(
    const Tensor& self,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t quant_min,
    int64_t quant_max,
    double grad_factor) {
  check_range(quant_min, quant_max);
  const auto zero = first(zero_point).round().clamp(quant_min, quant_max).to(kInt);
  return without_mask(self, first(scale).expand(self.sizes()), zero.expand(self.sizes()), {quant_min, quant_max});
}

Tensor _fake_quantize_learnable_per_channel_affine_mps(
    const Tensor& self,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t axis,
    int64_t quant_min,
    int64_t quant_max,
    double grad_factor) {
  const auto rounded = zero_point.round().clamp(quant_min, quant_max).to(kInt);
  check_channels(self, scale, rounded, axis, quant_min, quant_max);
  return without_mask(self, along(scale, self, axis), along(rounded, self, axis), {quant_min, quant_max});
}

std::tuple<Tensor, Tensor, Tensor> _fake_quantize_learnable_per_tensor_affine_backward_mps(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t quant_min,
    int64_t quant_max,
    double grad_factor) {
  const auto given = as_float32({self, grad, scale, zero_point});
  const auto &x = given[0], &dy = given[1];
  TORCH_CHECK(x.numel() == dy.numel(), "`X` and `dY` are not the same size");
  TORCH_CHECK(
      quant_min <= 0 && quant_max >= 0,
      "`quant_min` should be less than or equal to `quant_max`, and the quantization range should include 0.");
  if (x.numel() == 0) {
    return {self, scale, zero_point};
  }
  // The backward adds a half and drops the fraction, where the forward rounds.
  const auto place = first(given[3]).add(0.5).clamp(quant_min, quant_max).trunc();
  const auto [dx, of_scale, of_zero_point] = gradients(
      x.unsqueeze(0), dy.expand(x.sizes()).unsqueeze(0), first(given[2]).unsqueeze(0), place.unsqueeze(0),
      {quant_min, quant_max}, grad_factor);
  return {dx.select(0, 0), of_scale, of_zero_point};
}

std::tuple<Tensor, Tensor, Tensor> _fake_quantize_learnable_per_channel_affine_backward_mps(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& scale,
    const Tensor& zero_point,
    int64_t axis,
    int64_t quant_min,
    int64_t quant_max,
    double grad_factor) {
  const auto given = as_float32({self, grad, scale, zero_point});
  const auto &x = given[0], &dy = given[1];
  TORCH_CHECK(x.sizes() == dy.sizes(), "`X` and `dY` are not the same size");
  TORCH_CHECK(quant_min <= 0 && quant_max >= 0, "Expecting `quant_min` <= 0 and `quant_max` >= 0");
  check_sizes(x, given[2], given[3], axis);
  check_axis(x, axis);
  if (x.numel() == 0) {
    return {self, scale, zero_point};
  }
  const auto place = given[3].round().clamp(quant_min, quant_max);
  auto [dx, of_scale, of_zero_point] =
      gradients(x.movedim(axis, 0), dy.movedim(axis, 0), given[2], place, {quant_min, quant_max}, grad_factor);
  if (x.dim() == 1) { // the CPU reduces over all dimensions where no other one is left
    of_scale = of_scale.sum();
    of_zero_point = of_zero_point.sum();
  }
  return {dx.movedim(0, axis), of_scale, of_zero_point};
}

// Neither switch is read back, so that the range is computed even where it is not used.
std::tuple<Tensor, Tensor> _fused_moving_avg_obs_fq_helper_mps(
    const Tensor& self,
    const Tensor& observer_on,
    const Tensor& fake_quant_on,
    Tensor& running_min,
    Tensor& running_max,
    Tensor& scale,
    Tensor& zero_point,
    double averaging_const,
    int64_t quant_min,
    int64_t quant_max,
    int64_t ch_axis,
    bool per_row_fake_quant,
    bool symmetric_quant) {
  check_one(observer_on);
  check_one(fake_quant_on);
  const auto observes = observer_on.reshape(1).to(kLong), quantizes = fake_quant_on.reshape(1).to(kLong);
  if (!supportedFloatingType(self)) { // the CPU takes other dtypes where there is nothing to do
    TORCH_CHECK_NOT_IMPLEMENTED(
        observes.item<int64_t>() == 0 && quantizes.item<int64_t>() == 0,
        "_fused_moving_avg_obs_fq_helper is not implemented for ", self.scalar_type(), " on MPS");
    return {self.clone(), at::ones_like(self, self.options().dtype(kBool))};
  }
  for (const auto& tensor : {running_min, running_max}) {
    TORCH_CHECK(tensor.scalar_type() == kFloat, "expected scalar type Float but found ", tensor.scalar_type());
  }
  const std::array<Tensor, 4> state = {running_min, running_max, scale, zero_point};
  const auto channels = prepare_state(self, state, ch_axis, per_row_fake_quant);
  check_range(quant_min, quant_max);
  const auto [low, high] = extremes(self, channels, observes);
  std::array<Tensor, 4> working;
  for (const auto i : c10::irange(state.size())) {
    working[i] = state[i].to(i == 3 ? kInt : kFloat).contiguous();
  }
  const std::array<int64_t, 3> settings = {quant_min, quant_max, symmetric_quant};
  launch_elements(
      "observe", channels, working[0], working[1], working[2], working[3], low, high, observes, quantizes,
      static_cast<float>(averaging_const), settings);
  for (const auto i : c10::irange(state.size())) {
    if (!working[i].is_same(state[i])) {
      state[i].copy_(working[i]);
    }
  }
  const auto each = [&](const Tensor& numbers) {
    return per_row_fake_quant ? along(numbers, self, 0) : numbers.reshape({}).expand(self.sizes());
  };
  return masked(self, each(working[2]), each(working[3]), {quant_min, quant_max}, quantizes);
}
