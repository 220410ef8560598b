#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/MemoryOverlap.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/embedding_renorm_native.h>
#include <ATen/ops/sort.h>
#endif

namespace at::native {
using namespace mps;

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/EmbeddingRenorm_metallib.h>
#endif

namespace {

#include "shared/launch.h"

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
  launch_rows(
      "embedding_renorm_" + scalarToMetalTypeString(self), ordered.numel(), row_group(self.size(1)), self, ordered,
      norm, geometry, getCurrentMPSStream()->getErrorBuffer());
  return self;
}

} // namespace at::native
