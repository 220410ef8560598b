// Pooling over two dimensions, and its gradients. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"

using namespace mpsgraph;

namespace {

struct Pool {
  Shape kernel, stride, padding, dilation;
  bool ceil, pads_count, channels_last;
};

Pool pool_of(MPSGraphPooling2DOpDescriptor* d) {
  const auto number = [](NSUInteger value) { return static_cast<int64_t>(value); };
  if (d.paddingStyle != MPSGraphPaddingStyleExplicit || d.paddingLeft != d.paddingRight ||
      d.paddingTop != d.paddingBottom) {
    refuse("pooling with padding that is not explicit, or differs between two sides, is not simulated");
  }
  return {
      {number(d.kernelHeight), number(d.kernelWidth)},
      {number(d.strideInY), number(d.strideInX)},
      {number(d.paddingTop), number(d.paddingLeft)},
      {number(d.dilationRateInY), number(d.dilationRateInX)},
      static_cast<bool>(d.ceilMode),
      static_cast<bool>(d.includeZeroPadToAverage),
      d.dataLayout == MPSGraphTensorNamedDataLayoutNHWC};
}

Tensor channels_first(const Tensor& x, const Pool& pool) { return pool.channels_last ? x.movedim(-1, 1) : x; }
Tensor channels_back(const Tensor& x, const Pool& pool) { return pool.channels_last ? x.movedim(1, -1) : x; }

// Maxima, and their places in the flattened plane of the source.
std::tuple<Tensor, Tensor> maxima(const Tensor& x, const Pool& pool) {
  return at::max_pool2d_with_indices(x, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil);
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
    const auto [values, places] = maxima(channels_first(inputs[0], pool), pool);
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
    return channels_back(
        at::max_pool2d_with_indices_backward(
            g, x, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil, places),
        pool);
  });
}
- (MPSGraphTensor*)avgPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return unary(self, "avgPooling2D", source, [pool](const Tensor& x) {
    return channels_back(
        at::avg_pool2d(channels_first(x, pool), pool.kernel, pool.stride, pool.padding, pool.ceil, pool.pads_count),
        pool);
  });
}
- (MPSGraphTensor*)avgPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  const Pool pool = pool_of(descriptor);
  return binary(self, "avgPooling2DGradient", gradient, source, [pool](const Tensor& incoming, const Tensor& from) {
    const Tensor g = channels_first(incoming, pool), x = channels_first(from, pool);
    return channels_back(
        at::avg_pool2d_backward(g, x, pool.kernel, pool.stride, pool.padding, pool.ceil, pool.pads_count, std::nullopt),
        pool);
  });
}
@end
