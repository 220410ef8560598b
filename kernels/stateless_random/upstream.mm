#include <ATen/Dispatch.h>

namespace {

#include "shared/launch.h"

void check_key(const Tensor& key, const char* name, const char* shapes) {
  TORCH_CHECK(key.dim() >= 1 && key.size(-1) == 2, name, ": key must have shape ", shapes, ", got shape ", key.sizes());
  TORCH_CHECK(key.scalar_type() == kUInt64, name, ": key must have dtype uint64, got ", key.scalar_type());
}

void check_output(const Tensor& self, const Tensor& key, const char* name) {
  TORCH_CHECK(
      key.device() == self.device(), name, ": self and key must be on the same device, got ", self.device(), " and ",
      key.device());
  check_key(key, name, "(2,) or (*batch, 2)");
  TORCH_CHECK(
      key.dim() == 1 || key.dim() == self.dim() + 1, name,
      ": batched key must have ndim == output ndim + 1, got key shape ", key.sizes(), " with output shape ",
      self.sizes());
  for (const auto d : c10::irange(key.dim() - 1)) {
    TORCH_CHECK(
        key.size(d) == 1 || key.size(d) == self.size(d), name, ": key batch shape ", key.sizes().slice(0, self.dim()),
        " is not broadcastable with output shape ", self.sizes());
  }
}

void check_drawn(const Tensor& self, const Tensor& key, const char* name) {
  TORCH_CHECK(self.is_floating_point(), name, ": self must be a floating point tensor, got ", self.scalar_type());
  check_output(self, key, name);
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), name, " is not implemented for ", self.scalar_type(), " on MPS");
}

// New keys: of each key the splits from the number in `first` on, which is on the device.
Tensor derived(const Tensor& key, IntArrayRef shape, int64_t splits, const Tensor& first) {
  const auto words = at::empty(shape, key.options().dtype(kLong));
  if (words.numel() != 0) {
    const auto keys = key.view(kLong).contiguous();
    const std::array<int64_t, 2> sizes = {splits, keys.numel() / 2};
    launch_elements("derive_keys", words.numel() / 2, words, keys, first, sizes);
  }
  return words.view(kUInt64);
}

// A key draws for all elements over which its trailing dimensions of size 1 are broadcast.
template <typename L>
void draw(Tensor& self, const Tensor& key, const std::string& kernel, const std::array<L, 2>& limits) {
  assert_no_internal_overlap(self);
  if (self.numel() == 0) {
    return;
  }
  int64_t apart = key.dim() - 1;
  while (apart > 0 && key.size(apart - 1) == 1) {
    --apart;
  }
  auto keys = key.view(kLong);
  if (key.dim() > 1) {
    DimVector shape(self.sizes().slice(0, apart));
    shape.push_back(2);
    keys = keys.flatten(apart, -1).expand(shape);
  }
  keys = keys.contiguous();
  const int64_t count = keys.numel() / 2, elements = self.numel() / count;
  const int64_t each = 16 / std::max<int64_t>(4, self.element_size()); // of a call of Philox
  const std::array<int64_t, 3> sizes = {count, elements, (elements + each - 1) / each};
  const auto out = self.is_contiguous() ? self : at::empty(self.sizes(), self.options());
  launch_elements(kernel, count * sizes[2], out, keys, limits, sizes);
  if (!out.is_same(self)) {
    self.copy_(out);
  }
}

// The lowest number and the distance to the highest, both rounded to the dtype first.
std::array<float, 2> range_of(ScalarType dtype, double low, double high) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, dtype, "_philox_uniform_", [&] {
    const auto begin = static_cast<scalar_t>(low), end = static_cast<scalar_t>(high);
    return std::array<float, 2>{static_cast<float>(begin), static_cast<float>(end - begin)};
  });
}

} // namespace

Tensor _philox_key_split_mps(const Tensor& key, int64_t num_splits) {
  check_key(key, "_philox_key_split", "(*batch, 2)");
  TORCH_CHECK(num_splits > 0, "_philox_key_split: num_splits must be positive, got ", num_splits);
  DimVector shape{num_splits};
  shape.append(key.sizes().begin(), key.sizes().end());
  return derived(key, shape, num_splits, at::zeros({1}, key.options().dtype(kLong)));
}

Tensor _philox_key_fold_in_mps(const Tensor& key, int64_t data) {
  check_key(key, "_philox_key_fold_in", "(*batch, 2)");
  return derived(key, key.sizes(), 1, at::full({1}, data, key.options().dtype(kLong)));
}

Tensor _philox_key_fold_in_Tensor_mps(const Tensor& key, const Tensor& data) {
  check_key(key, "_philox_key_fold_in", "(*batch, 2)");
  TORCH_CHECK(
      data.scalar_type() == kUInt64, "_philox_key_fold_in: data must have dtype uint64, got ", data.scalar_type());
  TORCH_CHECK(data.numel() == 1, "_philox_key_fold_in: data must be a single value, got ", data.numel(), " elements");
  return derived(key, key.sizes(), 1, data.to(key.device()));
}

Tensor& _philox_uniform__mps(Tensor& self, const Tensor& key, double low, double high) {
  check_drawn(self, key, "_philox_uniform_");
  draw(self, key, "uniform_" + scalarToMetalTypeString(self), range_of(self.scalar_type(), low, high));
  return self;
}

Tensor& _philox_normal__mps(Tensor& self, const Tensor& key, double mean, double std) {
  check_drawn(self, key, "_philox_normal_");
  const std::array<float, 2> limits = {static_cast<float>(mean), static_cast<float>(std)};
  draw(self, key, "normal_" + scalarToMetalTypeString(self), limits);
  return self;
}

// Numbers are computed modulo 2^64, in which 0 is all that the drawn bits make.
Tensor& _philox_randint__mps(Tensor& self, const Tensor& key, std::optional<int64_t> low, std::optional<int64_t> high) {
  const auto dtype = self.scalar_type();
  TORCH_CHECK(isIntegralType(dtype, false), "_philox_randint_: self must have an integer dtype, got ", dtype);
  check_output(self, key, "_philox_randint_");
  const auto bits = 8 * self.element_size(), drawn = std::max<int64_t>(bits, 32);
  const uint64_t half = uint64_t(1) << (bits - 1), lowest = isSignedType(dtype) ? -half : 0;
  const uint64_t begin = low ? static_cast<uint64_t>(*low) : lowest;
  const uint64_t end = high ? static_cast<uint64_t>(*high) : lowest + 2 * half;
  uint64_t count = 0;
  if (begin != lowest || high) {
    count = drawn == 64 ? end - begin : (end - begin) & 0xffffffff;
    TORCH_CHECK(
        count != 0, "_philox_randint_: [low, high) must be non-empty; pass high=None for the dtype's full range");
    TORCH_CHECK(
        drawn == 64 || count < uint64_t(1) << 28 || (count & (count - 1)) == 0,
        "_philox_randint_: range (high - low = ", count,
        ") does not divide 2^32 evenly and is too large for the output dtype ", dtype,
        ": some numbers would come up noticeably more often. Take a power of two, or int64.");
  }
  const std::array<int64_t, 2> limits = {static_cast<int64_t>(begin), static_cast<int64_t>(count)};
  draw(self, key, "whole_" + std::to_string(self.element_size()), limits);
  return self;
}
