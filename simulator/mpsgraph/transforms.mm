// Fourier transforms and random tensors. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <ATen/CPUGeneratorImpl.h>
#include <atomic>
#include <limits>

#include "graph.h"

using namespace mpsgraph;

namespace {

// torch scales a forward transform with "forward" and an inverse one with "backward".
const char* norm_of(MPSGraphFFTScalingMode mode, bool inverse) {
  if (mode == MPSGraphFFTScalingModeUnitary) {
    return "ortho";
  }
  return (mode == MPSGraphFFTScalingModeSize) == inverse ? "backward" : "forward";
}

struct Distribution {
  MPSGraphRandomDistribution kind;
  c10::ScalarType type;
  double low, high, mean, deviation;
  int64_t lowest, highest;
};

Distribution distribution_of(MPSGraphRandomOpDescriptor* d) {
  return {d.distribution, scalar_type(d.dataType), d.min,        d.max,
          d.mean,         d.standardDeviation,     d.minInteger, d.maxInteger};
}

Tensor drawn(const Distribution& from, const Shape& shape, const at::Generator& generator) {
  if (c10::isIntegralType(from.type, true)) {
    // Host code gives the last number, not the one behind it.
    const int64_t end = from.highest + (from.highest < std::numeric_limits<int64_t>::max());
    return at::randint(from.lowest, end, shape, generator, at::kLong).to(from.type);
  }
  if (from.kind == MPSGraphRandomDistributionUniform) {
    return (at::rand(shape, generator, at::kFloat) * (from.high - from.low) + from.low).to(from.type);
  }
  if (from.kind != MPSGraphRandomDistributionNormal) {
    refuse("random tensors of distribution " + std::to_string(from.kind) + " are not simulated");
  }
  return (at::randn(shape, generator, at::kFloat) * from.deviation + from.mean).to(from.type);
}

// The same state gives the same numbers. They differ from a Mac's, which come from Philox.
at::Generator generator_of(const Tensor& state) {
  uint64_t seed = 1469598103934665603u; // FNV-1a
  for (const int64_t word : elements(state)) {
    seed = (seed ^ static_cast<uint64_t>(word)) * 1099511628211u;
  }
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::atomic<uint64_t> dropouts{0};

} // namespace

@implementation MPSGraph (MPSGraphRandomOps)
- (NSArray<MPSGraphTensor*>*)randomTensorWithShape:(MPSShape*)shape
                                        descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                       stateTensor:(MPSGraphTensor*)state
                                              name:(NSString*)name {
  const Shape to = numbers(shape);
  const Distribution from = distribution_of(descriptor);
  return results_of(self, "random", {state}, 2, [to, from](const Tensors& inputs) {
    return Tensors{drawn(from, to, generator_of(inputs[0])), inputs[0] + 1};
  });
}
- (NSArray<MPSGraphTensor*>*)randomTensorWithShapeTensor:(MPSGraphTensor*)shapeTensor
                                              descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                             stateTensor:(MPSGraphTensor*)state
                                                    name:(NSString*)name {
  const Distribution from = distribution_of(descriptor);
  MPSGraphTensor* numbers = shaped_by_values(
      self, "random", from.type, {shapeTensor, state}, {shapeTensor},
      [from](const Tensors& inputs) { return drawn(from, elements(inputs[0]), generator_of(inputs[1])); });
  return @[ numbers, unary(self, "random", state, [](const Tensor& x) { return x + 1; }) ];
}
- (MPSGraphTensor*)dropoutTensor:(MPSGraphTensor*)tensor rate:(double)rate name:(NSString*)name {
  return unary(self, "dropout", tensor, [rate](const Tensor& x) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(++dropouts);
    const Tensor kept = at::rand(x.sizes(), generator, at::kFloat) >= rate;
    return at::where(kept, x / (1 - rate), at::zeros({}, x.options()));
  });
}
@end

@implementation MPSGraph (MPSGraphFourierTransformOps)
- (MPSGraphTensor*)fastFourierTransformWithTensor:(MPSGraphTensor*)tensor
                                             axes:(NSArray<NSNumber*>*)axes
                                       descriptor:(MPSGraphFFTDescriptor*)descriptor
                                             name:(NSString*)name {
  const Shape dims = numbers(axes);
  const bool inverse = descriptor.inverse;
  const std::string norm = norm_of(descriptor.scalingMode, inverse);
  return unary(self, "fastFourierTransform", tensor, [=](const Tensor& x) {
    require_inner_axes("fastFourierTransform", x, dims);
    return inverse ? at::fft_ifftn(x, std::nullopt, dims, norm) : at::fft_fftn(x, std::nullopt, dims, norm);
  });
}
- (MPSGraphTensor*)realToHermiteanFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name {
  const Shape dims = numbers(axes);
  const std::string norm = norm_of(descriptor.scalingMode, false);
  return unary(self, "realToHermiteanFFT", tensor, [=](const Tensor& x) {
    require_inner_axes("realToHermiteanFFT", x, dims);
    return at::fft_rfftn(x, std::nullopt, dims, norm);
  });
}
- (MPSGraphTensor*)HermiteanToRealFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name {
  const Shape dims = numbers(axes);
  const std::string norm = norm_of(descriptor.scalingMode, true);
  const int64_t odd = descriptor.roundToOddHermitean ? 1 : 0;
  return unary(self, "HermiteanToRealFFT", tensor, [=](const Tensor& x) {
    require_inner_axes("HermiteanToRealFFT", x, dims);
    Shape sizes;
    for (const int64_t dim : dims) {
      sizes.push_back(x.size(dim));
    }
    sizes.back() = 2 * (sizes.back() - 1) + odd; // half of the last axis is left out
    const Tensor signal = at::fft_irfftn(x, sizes, dims, norm);
    const bool reversed = odd == 1 && is_beyond("HermiteanToRealFFT", "odd length", 1);
    return reversed ? signal.flip(dims.back()).roll(1, dims.back()) : signal;
  });
}
@end
