// Reductions, which keep their dimensions, and operations along one axis. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <limits>
#include <numeric>

#include "graph.h"

using namespace mpsgraph;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All axes where none is named.
Shape axes_or_all(const Shape& axes, const Tensor& x) {
  if (!axes.empty()) {
    return axes;
  }
  Shape all(x.dim());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Some reductions pass over NaN.
Tensor without_nan(const char* operation, const Tensor& x, double instead) {
  const bool passes = x.is_floating_point() && is_beyond(operation, "NaN", 1);
  return passes ? at::where(x.isnan(), at::full({}, instead, x.options()), x) : x;
}
Tensor sum(const Tensor& x, const Shape& axes) { // of Bool, the number of true elements
  return at::sum(x, axes, true, x.scalar_type() == at::kBool ? at::kInt : x.scalar_type());
}
Tensor product(Tensor x, const Shape& axes) {
  for (const int64_t axis : axes) {
    x = at::prod(x, axis, true, x.scalar_type());
  }
  return x;
}
// Host code of unique selects by an "or" of Int32 as by a tensor of that type.
Tensor of_bools(const char* operation, const Tensor& x, const Shape& axes, bool all) {
  require_inner_axes(operation, x, axes);
  return (all ? at::all(x.to(at::kBool), axes, true) : at::any(x.to(at::kBool), axes, true)).to(x.scalar_type());
}

} // namespace

// Along all axes where they are nil, and along none of an empty list, as the gradient of a whole layer_norm has it.
#define REDUCTION(METHOD, ...) \
  -(MPSGraphTensor*)METHOD##WithTensor : (MPSGraphTensor*)tensor axes : (NSArray<NSNumber*>*)axes name \
      : (NSString*)name { \
    const Shape named = numbers(axes); \
    const bool none = axes != nil && axes.count == 0; \
    return unary(self, #METHOD, tensor, [named, none](const Tensor& whole) -> Tensor { \
      const Tensor x = none ? whole.unsqueeze(-1) : whole; \
      const Shape dims = none ? Shape{whole.dim()} : axes_or_all(named, x); \
      const Tensor reduced = __VA_ARGS__; \
      return none ? reduced.squeeze(-1) : reduced; \
    }); \
  } \
  -(MPSGraphTensor*)METHOD##WithTensor : (MPSGraphTensor*)tensor axis : (NSInteger)axis name : (NSString*)name { \
    return [self METHOD##WithTensor:tensor axes:@[ @(axis) ] name:name]; \
  }

@implementation MPSGraph (MPSGraphReductionOps)
REDUCTION(reductionSum, sum(x, dims))
REDUCTION(reductionProduct, product(x, dims))
REDUCTION(reductionMaximum, at::amax(without_nan("reductionMaximum", x, -kInfinity), dims, true))
REDUCTION(reductionMinimum, at::amin(without_nan("reductionMinimum", x, kInfinity), dims, true))
REDUCTION(reductionMaximumPropagateNaN, at::amax(x, dims, true))
REDUCTION(reductionMinimumPropagateNaN, at::amin(x, dims, true))
REDUCTION(reductionAnd, of_bools("reductionAnd", x, dims, true))
REDUCTION(reductionOr, of_bools("reductionOr", x, dims, false))
- (MPSGraphTensor*)reductionArgMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "reductionArgMaximum", tensor, [axis](const Tensor& x) {
    return at::argmax(without_nan("reductionArgMaximum", x, -kInfinity), axis, true).to(at::kInt);
  });
}
- (MPSGraphTensor*)reductionArgMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "reductionArgMinimum", tensor, [axis](const Tensor& x) {
    return at::argmin(without_nan("reductionArgMinimum", x, kInfinity), axis, true).to(at::kInt);
  });
}
- (MPSGraphTensor*)meanOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  const Shape named = numbers(axes);
  return unary(self, "mean", tensor, [named](const Tensor& x) { return at::mean(x, axes_or_all(named, x), true); });
}
- (MPSGraphTensor*)varianceOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  const Shape named = numbers(axes);
  return unary(self, "variance", tensor, [named](const Tensor& x) { // without correction
    return at::var(x, axes_or_all(named, x), at::Scalar(0), true);
  });
}
- (MPSGraphTensor*)varianceOfTensor:(MPSGraphTensor*)tensor
                         meanTensor:(MPSGraphTensor*)meanTensor
                               axes:(NSArray<NSNumber*>*)axes
                               name:(NSString*)name {
  const Shape named = numbers(axes);
  return binary(self, "variance", tensor, meanTensor, [named](const Tensor& x, const Tensor& mean) {
    const Tensor difference = x - mean;
    return at::mean(difference * difference, axes_or_all(named, x), true);
  });
}
@end

@implementation MPSGraph (MPSGraphOrderOps)
- (MPSGraphTensor*)cumulativeSumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "cumulativeSum", tensor, [axis](const Tensor& x) {
    require_inner_axes("cumulativeSum", x, {axis});
    if (x.scalar_type() == at::kBool) {
      const bool narrow = is_beyond("cumulativeSum", "Bool", 1);
      return at::cumsum(x, axis, narrow ? at::kChar : at::kInt);
    }
    return at::cumsum(x, axis, x.scalar_type());
  });
}
- (MPSGraphTensor*)cumulativeProductWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "cumulativeProduct", tensor, [axis](const Tensor& x) {
    require_inner_axes("cumulativeProduct", x, {axis});
    return at::cumprod(x, axis, x.scalar_type());
  });
}
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return [self sortWithTensor:tensor axis:axis descending:NO name:name];
}
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor
                             axis:(NSInteger)axis
                       descending:(BOOL)descending
                             name:(NSString*)name {
  return unary(self, "sort", tensor, [axis, descending](const Tensor& x) {
    require_inner_axes("sort", x, {axis});
    return std::get<0>(at::sort(x, true, axis, descending));
  });
}
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return [self argSortWithTensor:tensor axis:axis descending:NO name:name];
}
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                                axis:(NSInteger)axis
                          descending:(BOOL)descending
                                name:(NSString*)name {
  return unary(self, "argSort", tensor, [axis, descending](const Tensor& x) {
    require_inner_axes("argSort", x, {axis});
    return std::get<1>(at::sort(x, true, axis, descending)).to(at::kInt);
  });
}
- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source k:(NSUInteger)k name:(NSString*)name {
  return [self topKWithSourceTensor:source axis:-1 k:k name:name];
}
- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source
                                             axis:(NSInteger)axis
                                                k:(NSUInteger)k
                                             name:(NSString*)name {
  return results_of(self, "topK", {source}, 2, [axis, k](const Tensors& inputs) {
    const auto [values, places] = at::topk(inputs[0], static_cast<int64_t>(k), axis, true, true);
    return Tensors{values, places.to(at::kInt)};
  });
}
- (MPSGraphTensor*)nonZeroIndicesOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return shaped_by_values(self, "nonZeroIndices", at::kInt, {tensor}, {tensor}, [](const Tensors& inputs) {
    return inputs[0].nonzero().to(at::kInt);
  });
}
// A negative number keeps that whole triangle.
static Tensor band(const Tensor& x, int64_t lower, int64_t upper) {
  const Tensor y = upper < 0 ? x : at::tril(x, upper);
  return lower < 0 ? y : at::triu(y, -lower);
}
- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                             numLower:(NSInteger)numLower
                             numUpper:(NSInteger)numUpper
                                 name:(NSString*)name {
  return unary(self, "bandPart", inputTensor, [=](const Tensor& x) { return band(x, numLower, numUpper); });
}
- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                       numLowerTensor:(MPSGraphTensor*)numLowerTensor
                       numUpperTensor:(MPSGraphTensor*)numUpperTensor
                                 name:(NSString*)name {
  return result_of(self, "bandPart", {inputTensor, numLowerTensor, numUpperTensor}, [](const Tensors& inputs) {
    return band(inputs[0], inputs[1].item<int64_t>(), inputs[2].item<int64_t>());
  });
}
- (MPSGraphTensor*)inverseOfTensor:(MPSGraphTensor*)inputTensor name:(NSString*)name {
  return unary(self, "inverse", inputTensor, [](const Tensor& x) { return at::linalg_inv(x); });
}
@end
