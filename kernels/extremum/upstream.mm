#include <ATen/Dispatch.h>
#include <ATen/native/ReduceAllOps.h>

namespace {

#include "shared/launch.h"

constexpr int64_t group_size = 256; // what the kernels are written for
constexpr int64_t most_groups = 1024;

// Reduces `self` to one value a group; every group has its share of the elements.
void reduce(const std::string& name, const Tensor& self, const Tensor& partial, int64_t groups) {
  const auto suffix = scalarToMetalTypeString(self);
  const bool dense = is_dense_and_aligned({self});
  @autoreleasepool {
    auto stream = getCurrentMPSStream();
    auto state = lib.getPipelineStateForFunc(name + (dense ? "_dense_" : "_strided_") + suffix);
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(state, name, {self});
      [encoder setComputePipelineState:state];
      if (dense) {
        mtl_setArgs(encoder, partial, self, self.numel());
      } else {
        mtl_setArgs(encoder, partial, self, packed_layout({self}));
      }
      [encoder dispatchThreads:MTLSizeMake(groups * group_size, 1, 1)
          threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
      getMPSProfiler().endProfileKernel(state);
    });
  }
}

// What no element leaves, as on the CPU: with out= it refuses no empty tensor.
Scalar identity_of(const std::string& name, ScalarType dtype) {
  const bool of_largest = name == "max";
  if (isFloatingType(dtype)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return of_largest ? -infinity : infinity;
  }
  return AT_DISPATCH_INTEGRAL_TYPES_AND(kBool, dtype, "identity_of", [&] {
    using limits = std::numeric_limits<scalar_t>;
    return Scalar(of_largest ? limits::lowest() : limits::max());
  });
}

void extremum(const std::string& name, Tensor& result, const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), name, " is not implemented for ", self.scalar_type(), " on MPS");
  // Where the result is an element of the input, other threads may still read it.
  const bool is_apart = result.scalar_type() == self.scalar_type() && !result.is_alias_of(self);
  const auto out = is_apart ? result : at::empty({}, self.options());
  const int64_t share = group_size * 16 / self.element_size();
  const int64_t groups = std::min(most_groups, (self.numel() + share - 1) / share);
  if (groups == 0) {
    out.fill_(identity_of(name, self.scalar_type()));
  } else if (groups == 1) {
    reduce(name, self, out, 1);
  } else {
    const auto partial = at::empty({groups}, self.options());
    reduce(name, self, partial, groups);
    reduce(name, partial, out, 1);
  }
  if (!out.is_same(result)) {
    result.copy_(out);
  }
}

void max_all_kernel(Tensor& result, const Tensor& self) { extremum("max", result, self); }

void min_all_kernel(Tensor& result, const Tensor& self) { extremum("min", result, self); }

} // namespace

REGISTER_DISPATCH(max_all_stub, &max_all_kernel)
REGISTER_DISPATCH(min_all_stub, &min_all_kernel)
