#include <ATen/ExpandUtils.h>

namespace {

#include "shared/launch.h"

// Words for the key and the counter of Philox, drawn on the device: nothing is read back.
Tensor seed_of(const Tensor& self, const std::optional<Generator>& generator) {
  return at::empty({4}, self.options().dtype(kInt)).random_(generator);
}

void check_floating(const Tensor& x, const char* name) {
  TORCH_CHECK_VALUE(
      x.is_floating_point(), "binomial only supports floating-point dtypes for ", name, ", got: ", x.scalar_type());
}

} // namespace

Tensor poisson_mps(const Tensor& self, std::optional<Generator> generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "poisson is not implemented for ", self.scalar_type(), " on MPS");
  auto out = at::empty(self.sizes(), self.options());
  const auto elements = out.numel();
  if (elements != 0) {
    launch_elements(
        "poisson_" + scalarToMetalTypeString(self), elements, out, self.contiguous(), seed_of(self, generator),
        elements, getCurrentMPSStream()->getErrorBuffer());
  }
  return out;
}

Tensor binomial_mps(const Tensor& count, const Tensor& prob, std::optional<Generator> generator) {
  check_floating(count, "count");
  check_floating(prob, "prob");
  TORCH_CHECK_NOT_IMPLEMENTED(
      count.scalar_type() == kFloat, "binomial is not implemented for ", count.scalar_type(), " on MPS");
  TORCH_CHECK(
      prob.scalar_type() == count.scalar_type(), "Found dtype ", prob.scalar_type(), " but expected ",
      count.scalar_type());
  const auto [counts, probabilities] = expand_outplace(count, prob);
  auto out = at::empty(counts->sizes(), count.options());
  const auto elements = out.numel();
  if (elements != 0) {
    launch_elements(
        "binomial_of", elements, out, counts->contiguous(), probabilities->contiguous(), seed_of(count, generator),
        elements);
  }
  return out;
}
