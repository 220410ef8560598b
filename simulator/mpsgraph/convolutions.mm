// Convolutions and their gradients. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <algorithm>

#include "graph.h"

using namespace mpsgraph;

namespace {

// `pads` begin with the innermost dimension, left before right; the other lists with the outermost one.
struct Window {
  Shape pads, stride, dilation;
  int64_t groups;
  bool channels_last, filters_last; // NHWC and HWIO, instead of NCHW and OIHW
};

void require_explicit(MPSGraphPaddingStyle style) {
  if (style != MPSGraphPaddingStyleExplicit) {
    refuse("a convolution with padding style " + std::to_string(style) + " is not simulated");
  }
}
int64_t number(NSUInteger value) { return static_cast<int64_t>(value); }

Window window_of(MPSGraphConvolution2DOpDescriptor* d) {
  require_explicit(d.paddingStyle);
  return {
      {number(d.paddingLeft), number(d.paddingRight), number(d.paddingTop), number(d.paddingBottom)},
      {number(d.strideInY), number(d.strideInX)},
      {number(d.dilationRateInY), number(d.dilationRateInX)},
      number(d.groups),
      d.dataLayout == MPSGraphTensorNamedDataLayoutNHWC,
      d.weightsLayout == MPSGraphTensorNamedDataLayoutHWIO};
}
Window window_of(MPSGraphConvolution3DOpDescriptor* d) {
  require_explicit(d.paddingStyle);
  return {
      {number(d.paddingLeft), number(d.paddingRight), number(d.paddingTop), number(d.paddingBottom),
       number(d.paddingFront), number(d.paddingBack)},
      {number(d.strideInZ), number(d.strideInY), number(d.strideInX)},
      {number(d.dilationRateInZ), number(d.dilationRateInY), number(d.dilationRateInX)},
      number(d.groups),
      d.dataLayout == MPSGraphTensorNamedDataLayoutNDHWC,
      d.weightsLayout == MPSGraphTensorNamedDataLayoutDHWIO};
}

// Between the layouts of the graph and NCHW, OIHW.
Tensor channels_first(const Tensor& x, const Window& window) { return window.channels_last ? x.movedim(-1, 1) : x; }
Tensor channels_back(const Tensor& x, const Window& window) { return window.channels_last ? x.movedim(1, -1) : x; }
Tensor filters_first(const Tensor& w, const Window& window) {
  return window.filters_last ? w.movedim({-1, -2}, {0, 1}) : w;
}
Tensor filters_back(const Tensor& w, const Window& window) {
  return window.filters_last ? w.movedim({0, 1}, {-1, -2}) : w;
}

Shape zeros_of(const Window& window) { return Shape(window.stride.size(), 0); }

// Padding is applied first, because it may differ between the two sides.
Tensor convolved(const Tensor& x, const Tensor& weights, const Window& window) {
  const Shape zeros = zeros_of(window);
  const Tensor padded = at::constant_pad_nd(x, window.pads, 0);
  return at::convolution(padded, weights, {}, window.stride, zeros, window.dilation, false, zeros, window.groups);
}

std::tuple<Tensor, Tensor, Tensor> gradients(
    const Tensor& g, const Tensor& x, const Tensor& weights, const Window& window, std::array<bool, 3> wanted) {
  const Shape zeros = zeros_of(window);
  const Tensor padded = at::constant_pad_nd(x, window.pads, 0);
  return at::convolution_backward(
      g, padded, weights, {}, window.stride, zeros, window.dilation, false, zeros, window.groups, wanted);
}
// The gradient, padded to the output's size: output_padding may be above the stride, and those places contribute zero.
Tensor padded_to_output(const Tensor& g, const Tensor& weights, const Tensor& x, const Window& window) {
  Shape missing(window.pads.size(), 0);
  for (int64_t d = 0, rank = static_cast<int64_t>(window.stride.size()); d < rank; ++d) {
    const int64_t room = x.size(d - rank) - window.dilation[d] * (weights.size(d - rank) - 1) - 1;
    const int64_t *pads = &window.pads[2 * (rank - 1 - d)], places = (room + pads[0] + pads[1]) / window.stride[d] + 1;
    missing[2 * (rank - 1 - d) + 1] = std::max<int64_t>(0, places - g.size(d - rank));
  }
  return at::constant_pad_nd(g, missing, 0);
}
Tensor data_gradient(const Tensor& incoming, const Tensor& weights, const Tensor& x, const Window& window) {
  const Tensor g = padded_to_output(incoming, weights, x, window);
  Shape cropped = window.pads;
  for (int64_t& pad : cropped) {
    pad = -pad;
  }
  return at::constant_pad_nd(std::get<0>(gradients(g, x, weights, window, {true, false, false})), cropped, 0);
}
Tensor weights_gradient(const Tensor& g, const Tensor& weights, const Tensor& x, const Window& window) {
  return std::get<1>(gradients(g, x, weights, window, {false, true, false}));
}

MPSGraphTensor* convolution(MPSGraph* graph, MPSGraphTensor* source, MPSGraphTensor* weights, const Window& window) {
  require_one_type("convolution", {source, weights});
  return result_of(graph, "convolution", {source, weights}, [window](const Tensors& inputs) {
    const Tensor x = channels_first(inputs[0], window);
    Tensor y = convolved(x, filters_first(inputs[1], window), window);
    if (is_beyond("convolution", "channels", y.size(1))) {
      const Tensor all = y;
      y = at::zeros_like(all);
      copy_wrapped(y, all, 1);
    }
    return channels_back(y, window);
  });
}
// Also a transposed convolution, whose output has the shape.
MPSGraphTensor* data_gradient(
    MPSGraph* graph, MPSGraphTensor* gradient, MPSGraphTensor* weights, const Shape& shape, const Window& window) {
  require_one_type("convolutionDataGradient", {gradient, weights});
  return result_of(graph, "convolutionDataGradient", {gradient, weights}, [shape, window](const Tensors& inputs) {
    const Tensor x = channels_first(at::zeros(shape, inputs[0].options()), window);
    const Tensor g = channels_first(inputs[0], window);
    return channels_back(data_gradient(g, filters_first(inputs[1], window), x, window), window);
  });
}
MPSGraphTensor* weights_gradient(
    MPSGraph* graph, MPSGraphTensor* gradient, MPSGraphTensor* source, const Shape& shape, const Window& window) {
  require_one_type("convolutionWeightsGradient", {gradient, source});
  return result_of(graph, "convolutionWeightsGradient", {gradient, source}, [shape, window](const Tensors& inputs) {
    const Tensor weights = filters_first(at::zeros(shape, inputs[0].options()), window);
    Tensor g = channels_first(inputs[0], window), x = channels_first(inputs[1], window);
    if (is_beyond("convolutionWeightsGradient", "batch", x.size(0))) {
      const int64_t left = x.size(0) % kWrap;
      g = g.narrow(0, 0, left);
      x = x.narrow(0, 0, left);
    }
    return filters_back(weights_gradient(g, weights, x, window), window);
  });
}

// A depthwise convolution over three dimensions: one filter for each channel, which is a dimension of data and weights.
struct Depthwise {
  Window window;
  int64_t channel; // counted from the end
};

Depthwise depthwise_of(MPSGraphDepthwiseConvolution3DOpDescriptor* d) {
  require_explicit(d.paddingStyle);
  const Shape pads = numbers(d.paddingValues); // outermost first
  Window window = {{}, numbers(d.strides), numbers(d.dilationRates), 1, false, false};
  for (size_t dimension = pads.size() / 2; dimension-- > 0;) {
    window.pads.push_back(pads[2 * dimension]);
    window.pads.push_back(pads[2 * dimension + 1]);
  }
  return {window, d.channelDimensionIndex};
}
// [batch, channels, depth, height, width]; four dimensions are one batch.
Tensor spread(const Tensor& x, const Depthwise& depthwise) {
  const Tensor moved = x.movedim(depthwise.channel, -4);
  return moved.reshape({-1, moved.size(-4), moved.size(-3), moved.size(-2), moved.size(-1)});
}
Tensor gathered_back(const Tensor& x, const Depthwise& depthwise, int64_t rank) {
  return (rank == 4 ? x.squeeze(0) : x).movedim(-4, depthwise.channel);
}
Tensor filters_of(const Tensor& weights, const Depthwise& depthwise) {
  return weights.movedim(depthwise.channel, -4).unsqueeze(1);
}
Window grouped(const Depthwise& depthwise, const Tensor& x) {
  Window window = depthwise.window;
  window.groups = x.size(1);
  return window;
}

} // namespace

#define CONVOLUTION(N) \
  -(MPSGraphTensor*)convolution##N##DWithSourceTensor : (MPSGraphTensor*)source weightsTensor \
      : (MPSGraphTensor*)weights descriptor : (MPSGraphConvolution##N##DOpDescriptor*)descriptor name \
      : (NSString*)name { \
    return convolution(self, source, weights, window_of(descriptor)); \
  } \
  -(MPSGraphTensor*)convolution##N##DDataGradientWithIncomingGradientTensor \
      : (MPSGraphTensor*)incomingGradient weightsTensor : (MPSGraphTensor*)weights outputShape \
      : (MPSShape*)outputShape forwardConvolutionDescriptor \
      : (MPSGraphConvolution##N##DOpDescriptor*)forwardConvolutionDescriptor name : (NSString*)name { \
    return data_gradient( \
        self, incomingGradient, weights, numbers(outputShape), window_of(forwardConvolutionDescriptor)); \
  } \
  -(MPSGraphTensor*)convolution##N##DWeightsGradientWithIncomingGradientTensor \
      : (MPSGraphTensor*)incomingGradient sourceTensor : (MPSGraphTensor*)source outputShape \
      : (MPSShape*)outputShape forwardConvolutionDescriptor \
      : (MPSGraphConvolution##N##DOpDescriptor*)forwardConvolutionDescriptor name : (NSString*)name { \
    return weights_gradient( \
        self, incomingGradient, source, numbers(outputShape), window_of(forwardConvolutionDescriptor)); \
  }

@implementation MPSGraph (MPSGraphConvolutionOps)
CONVOLUTION(2)
CONVOLUTION(3)
- (MPSGraphTensor*)depthwiseConvolution3DWithSourceTensor:(MPSGraphTensor*)source
                                            weightsTensor:(MPSGraphTensor*)weights
                                               descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  const Depthwise depthwise = depthwise_of(descriptor);
  return binary(self, "depthwiseConvolution3D", source, weights, [depthwise](const Tensor& x, const Tensor& w) {
    const Tensor data = spread(x, depthwise);
    return gathered_back(convolved(data, filters_of(w, depthwise), grouped(depthwise, data)), depthwise, x.dim());
  });
}
- (MPSGraphTensor*)
    depthwiseConvolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                   weightsTensor:(MPSGraphTensor*)weights
                                                     outputShape:(MPSShape*)outputShape
                                                      descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                            name:(NSString*)name {
  const Depthwise depthwise = depthwise_of(descriptor);
  const Shape shape = numbers(outputShape);
  return binary(
      self, "depthwiseConvolution3DDataGradient", incomingGradient, weights, [=](const Tensor& g, const Tensor& w) {
        const Tensor data = spread(at::zeros(shape, g.options()), depthwise);
        const Tensor found =
            data_gradient(spread(g, depthwise), filters_of(w, depthwise), data, grouped(depthwise, data));
        return gathered_back(found, depthwise, g.dim());
      });
}
- (MPSGraphTensor*)
    depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                       sourceTensor:(MPSGraphTensor*)source
                                                        outputShape:(MPSShape*)outputShape
                                                         descriptor:
                                                             (MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                               name:(NSString*)name {
  const Depthwise depthwise = depthwise_of(descriptor);
  const Shape shape = numbers(outputShape);
  return binary(
      self, "depthwiseConvolution3DWeightsGradient", incomingGradient, source, [=](const Tensor& g, const Tensor& x) {
        const Tensor data = spread(x, depthwise), filters = filters_of(at::zeros(shape, g.options()), depthwise);
        const Tensor found = weights_gradient(spread(g, depthwise), filters, data, grouped(depthwise, data));
        return found.squeeze(1).movedim(-4, depthwise.channel);
      });
}
@end
