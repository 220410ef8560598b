#include "registration.h"

#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

namespace mpsmith {
namespace {

// torch's own asks a DispatchStub whether it knows mps, which a build without mps refuses to answer.
at::Tensor scaled_dot_product_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  std::optional<at::Tensor> bias = mask;
  if (mask && mask->defined() && mask->scalar_type() == at::kBool) {
    bias = at::zeros_like(*mask, query.dtype())
               .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, bias, dropout, is_causal, {}, scale, enable_gqa));
}

} // namespace

void register_composites(torch::Library& mps, torch::Library& autograd_mps) {
  mps.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention));
  autograd_mps.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention));
}

} // namespace mpsmith
