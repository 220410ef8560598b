// Activations, normalization, and their gradients. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"

using namespace mpsgraph;

@implementation MPSGraph (MPSGraphActivationOps)
- (MPSGraphTensor*)reLUGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                       sourceTensor:(MPSGraphTensor*)source
                                               name:(NSString*)name {
  return binary(self, "reLUGradient", gradient, source, [](const Tensor& g, const Tensor& x) {
    return at::where(x > 0, g, at::zeros({}, g.options()));
  });
}
- (MPSGraphTensor*)sigmoidGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                          sourceTensor:(MPSGraphTensor*)source
                                                  name:(NSString*)name {
  return binary(self, "sigmoidGradient", gradient, source, [](const Tensor& g, const Tensor& x) {
    return at::sigmoid_backward(g, x.sigmoid());
  });
}
- (MPSGraphTensor*)softMaxWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "softMax", tensor, [axis](const Tensor& x) { return at::softmax(x, axis); });
}
- (MPSGraphTensor*)softMaxGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                          sourceTensor:(MPSGraphTensor*)source
                                                  axis:(NSInteger)axis
                                                  name:(NSString*)name {
  return binary(self, "softMaxGradient", gradient, source, [axis](const Tensor& g, const Tensor& x) {
    return at::_softmax_backward_data(g, at::softmax(x, axis), axis, x.scalar_type());
  });
}
- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor alpha:(double)alpha name:(NSString*)name {
  return unary(self, "leakyReLU", tensor, [alpha](const Tensor& x) { return at::leaky_relu(x, alpha); });
}
- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor
                           alphaTensor:(MPSGraphTensor*)alphaTensor
                                  name:(NSString*)name {
  return binary(self, "leakyReLU", tensor, alphaTensor, [](const Tensor& x, const Tensor& alpha) {
    return at::where(x > 0, x, x * alpha);
  });
}
- (MPSGraphTensor*)leakyReLUGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                            sourceTensor:(MPSGraphTensor*)source
                                             alphaTensor:(MPSGraphTensor*)alphaTensor
                                                    name:(NSString*)name {
  require_one_type("leakyReLUGradient", {gradient, source, alphaTensor});
  return result_of(self, "leakyReLUGradient", {gradient, source, alphaTensor}, [](const Tensors& inputs) {
    return at::where(inputs[1] > 0, inputs[0], inputs[0] * inputs[2]);
  });
}
@end

@implementation MPSGraph (MPSGraphNormalizationOps)
// gamma * (x - mean) / sqrt(variance + epsilon) + beta
- (MPSGraphTensor*)normalizationWithTensor:(MPSGraphTensor*)tensor
                                meanTensor:(MPSGraphTensor*)mean
                            varianceTensor:(MPSGraphTensor*)variance
                               gammaTensor:(MPSGraphTensor*)gamma
                                betaTensor:(MPSGraphTensor*)beta
                                   epsilon:(float)epsilon
                                      name:(NSString*)name {
  std::vector<MPSGraphTensor*> operands = {tensor, mean, variance};
  const bool scaled = gamma != nil, shifted = beta != nil;
  if (scaled) {
    operands.push_back(gamma);
  }
  if (shifted) {
    operands.push_back(beta);
  }
  require_one_type("normalization", operands);
  return result_of(self, "normalization", operands, [=](const Tensors& inputs) {
    Tensor y = (inputs[0] - inputs[1]) * at::rsqrt(inputs[2] + epsilon);
    y = scaled ? y * inputs[3] : y;
    return shifted ? y + inputs.back() : y;
  });
}
// With the results of the two methods below, which this stand-in computes again.
- (MPSGraphTensor*)normalizationGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                      sourceTensor:(MPSGraphTensor*)sourceTensor
                                                        meanTensor:(MPSGraphTensor*)meanTensor
                                                    varianceTensor:(MPSGraphTensor*)varianceTensor
                                                       gammaTensor:(MPSGraphTensor*)gamma
                                               gammaGradientTensor:(MPSGraphTensor*)gammaGradient
                                                betaGradientTensor:(MPSGraphTensor*)betaGradient
                                                     reductionAxes:(NSArray<NSNumber*>*)axes
                                                           epsilon:(float)epsilon
                                                              name:(NSString*)name {
  const Shape dims = numbers(axes);
  const bool scaled = gamma != nil;
  std::vector<MPSGraphTensor*> operands = {incomingGradientTensor, sourceTensor, meanTensor, varianceTensor};
  if (scaled) {
    operands.push_back(gamma);
  }
  require_one_type("normalizationGradient", operands);
  return result_of(self, "normalizationGradient", operands, [=](const Tensors& inputs) {
    const Tensor inverse = at::rsqrt(inputs[3] + epsilon), normalized = (inputs[1] - inputs[2]) * inverse;
    const Tensor g = scaled ? inputs[0] * inputs[4] : inputs[0];
    return inverse * (g - at::mean(g, dims, true) - normalized * at::mean(g * normalized, dims, true));
  });
}
- (MPSGraphTensor*)normalizationGammaGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                           sourceTensor:(MPSGraphTensor*)sourceTensor
                                                             meanTensor:(MPSGraphTensor*)meanTensor
                                                         varianceTensor:(MPSGraphTensor*)varianceTensor
                                                          reductionAxes:(NSArray<NSNumber*>*)axes
                                                                epsilon:(float)epsilon
                                                                   name:(NSString*)name {
  const Shape dims = numbers(axes);
  const std::vector<MPSGraphTensor*> operands = {incomingGradientTensor, sourceTensor, meanTensor, varianceTensor};
  require_one_type("normalizationGammaGradient", operands);
  return result_of(self, "normalizationGammaGradient", operands, [=](const Tensors& inputs) {
    return at::sum(inputs[0] * (inputs[1] - inputs[2]) * at::rsqrt(inputs[3] + epsilon), dims, true);
  });
}
- (MPSGraphTensor*)normalizationBetaGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                          sourceTensor:(MPSGraphTensor*)sourceTensor
                                                         reductionAxes:(NSArray<NSNumber*>*)axes
                                                                  name:(NSString*)name {
  const Shape dims = numbers(axes);
  return unary(self, "normalizationBetaGradient", incomingGradientTensor, [dims](const Tensor& g) {
    return at::sum(g, dims, true);
  });
}
@end
