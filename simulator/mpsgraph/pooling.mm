// Pooling over two dimensions, and its gradients. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <limits>

#include "graph.h"

using namespace mpsgraph;

namespace {

// `extra`: how much more padding there is below and at the right than above and at the left.
struct Pool {
  Shape kernel, stride, padding, dilation, extra;
  bool ceil, pads_count, channels_last;
};

Pool pool_of(MPSGraphPooling2DOpDescriptor* d) {
  const auto number = [](NSUInteger value) { return static_cast<int64_t>(value); };
  if (d.paddingStyle != MPSGraphPaddingStyleExplicit || d.paddingLeft > d.paddingRight ||
      d.paddingTop > d.paddingBottom) {
    refuse("pooling with padding that is not explicit, or larger at the left or above, is not simulated");
  }
  return {
      {number(d.kernelHeight), number(d.kernelWidth)},
      {number(d.strideInY), number(d.strideInX)},
      {number(d.paddingTop), number(d.paddingLeft)},
      {number(d.dilationRateInY), number(d.dilationRateInX)},
      {number(d.paddingBottom - d.paddingTop), number(d.paddingRight - d.paddingLeft)},
      static_cast<bool>(d.ceilMode),
      static_cast<bool>(d.includeZeroPadToAverage),
      d.dataLayout == MPSGraphTensorNamedDataLayoutNHWC};
}

Tensor channels_first(const Tensor& x, const Pool& pool) { return pool.channels_last ? x.movedim(-1, 1) : x; }
Tensor channels_back(const Tensor& x, const Pool& pool) { return pool.channels_last ? x.movedim(1, -1) : x; }

at::Scalar lowest(c10::ScalarType type) {
  if (c10::isFloatingType(type)) {
    return -std::numeric_limits<double>::infinity();
  }
  return c10::isSignedType(type) ? std::numeric_limits<int64_t>::min() >> (64 - 8 * c10::elementSize(type)) : 0;
}

// Maxima, and their places in the flattened plane of the source.
std::tuple<Tensor, Tensor> maxima(const Tensor& x, const Pool& pool) {
  const Tensor padded = at::constant_pad_nd(x, {0, pool.extra[1], 0, pool.extra[0]}, lowest(x.scalar_type()));
  const auto [values, places] =
      at::max_pool2d_with_indices(padded, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil);
  const int64_t width = padded.size(-1);
  return {values, at::floor_divide(places, width) * x.size(-1) + at::remainder(places, width)};
}

// How many windows begin past the end of a dimension, if its number of windows is rounded up.
int64_t past_the_end(int64_t length, int64_t d, const Pool& pool) {
  const int64_t room = length + 2 * pool.padding[d] + pool.extra[d] - pool.dilation[d] * (pool.kernel[d] - 1) - 1;
  const int64_t last = (room + pool.stride[d] - 1) / pool.stride[d] * pool.stride[d];
  return last >= length + pool.padding[d] ? 1 : 0;
}

bool is_even(const Pool& pool) { return pool.extra[0] == 0 && pool.extra[1] == 0; }

// With all padding in place: the left, right, upper and lower one. torch's own pools take the same on two sides.
Tensor padded(const Tensor& x, const Pool& pool, double value) {
  const int64_t left = pool.padding[1], top = pool.padding[0];
  return at::constant_pad_nd(x, {left, left + pool.extra[1], top, top + pool.extra[0]}, value);
}
// What sums are divided by, where it is not the number of elements of the tensor under each window. Where padding counts,
// so do places past the end that only windows of a rounded up number have, as host code's own divisor needs it.
std::optional<int64_t> divisor(const Pool& pool) {
  return pool.pads_count ? std::optional(pool.kernel[0] * pool.kernel[1]) : std::nullopt;
}
Tensor counts(const Tensor& x, const Pool& pool) {
  const Tensor sums =
      at::avg_pool2d(padded(at::ones_like(x), pool, 0), pool.kernel, pool.stride, {0, 0}, pool.ceil, false, 1);
  return pool.pads_count ? at::full_like(sums, *divisor(pool)) : sums;
}

Tensor averages(const Tensor& x, const Pool& pool) {
  if (is_even(pool)) {
    return at::avg_pool2d(x, pool.kernel, pool.stride, pool.padding, pool.ceil, false, divisor(pool));
  }
  const Tensor sums = at::avg_pool2d(padded(x, pool, 0), pool.kernel, pool.stride, {0, 0}, pool.ceil, false, 1);
  return sums / counts(x, pool);
}
Tensor averages_gradient(const Tensor& g, const Tensor& x, const Pool& pool) {
  if (is_even(pool)) {
    return at::avg_pool2d_backward(g, x, pool.kernel, pool.stride, pool.padding, pool.ceil, false, divisor(pool));
  }
  const Tensor whole = at::avg_pool2d_backward(
      g / counts(x, pool), padded(x, pool, 0), pool.kernel, pool.stride, {0, 0}, pool.ceil, false, 1);
  return whole.narrow(-2, pool.padding[0], x.size(-2)).narrow(-1, pool.padding[1], x.size(-1));
}

} // namespace

@implementation MPSGraph (MPSGraphPoolingOps)
- (MPSGraphTensor*)maxPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return unary(self, "maxPooling2D", source, [pool](const Tensor& x) {
    return channels_back(std::get<0>(maxima(channels_first(x, pool), pool)), pool);
  });
}
- (NSArray<MPSGraphTensor*>*)maxPooling2DReturnIndicesWithSourceTensor:(MPSGraphTensor*)source
                                                            descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                                  name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  if (descriptor.returnIndicesMode != MPSGraphPoolingReturnIndicesGlobalFlatten2D) {
    refuse("maxPooling2DReturnIndices: indices other than of the flattened plane are not simulated");
  }
  const auto type = scalar_type(descriptor.returnIndicesDataType);
  return results_of(self, "maxPooling2DReturnIndices", {source}, 2, [pool, type](const Tensors& inputs) {
    const Tensor x = channels_first(inputs[0], pool);
    for (int64_t d = 0; pool.ceil && d < 2; ++d) {
      is_beyond("maxPooling2DReturnIndices", "windows that begin past the end", past_the_end(x.size(d - 2), d, pool));
    }
    const auto [values, places] = maxima(x, pool);
    return Tensors{channels_back(values, pool), channels_back(places, pool).to(type)};
  });
}
- (MPSGraphTensor*)maxPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return binary(self, "maxPooling2DGradient", gradient, source, [pool](const Tensor& incoming, const Tensor& from) {
    const Tensor g = channels_first(incoming, pool), x = channels_first(from, pool);
    const Tensor places = std::get<1>(maxima(x, pool));
    const Tensor flat = at::zeros_like(x).flatten(-2).scatter_add(-1, places.flatten(-2), g.flatten(-2));
    return channels_back(flat.reshape(x.sizes()), pool);
  });
}
- (MPSGraphTensor*)avgPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return unary(self, "avgPooling2D", source, [pool](const Tensor& x) {
    return channels_back(averages(channels_first(x, pool), pool), pool);
  });
}
- (MPSGraphTensor*)avgPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return binary(self, "avgPooling2DGradient", gradient, source, [pool](const Tensor& g, const Tensor& x) {
    return channels_back(averages_gradient(channels_first(g, pool), channels_first(x, pool), pool), pool);
  });
}
@end
