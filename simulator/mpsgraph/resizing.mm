// Resizing of images, its gradients, and sampling at a grid of places. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <cmath>

#include "graph.h"

using namespace mpsgraph;

namespace {

// How the places of a result map to places of the source. Scales and offsets: of the height, then of the width; with
// `from_sizes` they follow from the sizes, with the centers or the corners of both images in the same place.
struct Resize {
  bool bilinear, centers, corners, from_sizes;
  MPSGraphResizeNearestRoundingMode rounding;
  int64_t height_axis;
};

int64_t height_axis(MPSGraphTensorNamedDataLayout layout) {
  switch (layout) {
    case MPSGraphTensorNamedDataLayoutNCHW:
      return 2;
    case MPSGraphTensorNamedDataLayoutNHWC:
    case MPSGraphTensorNamedDataLayoutCHW:
      return 1;
    case MPSGraphTensorNamedDataLayoutHWC:
    case MPSGraphTensorNamedDataLayoutHW:
      return 0;
    default:
      refuse("a resize of data in layout " + std::to_string(layout) + " is not simulated");
  }
}

// For each place of the result: two places of the source, and the weight of the second.
struct Taps { Tensor low, high, weight; };

int64_t rounded(float place, MPSGraphResizeNearestRoundingMode mode) {
  switch (mode) {
    case MPSGraphResizeNearestRoundingModeRoundPreferCeil:
      return std::lrint(std::floor(place + 0.5f));
    case MPSGraphResizeNearestRoundingModeRoundPreferFloor:
      return std::lrint(std::ceil(place - 0.5f));
    case MPSGraphResizeNearestRoundingModeCeil:
      return std::lrint(std::ceil(place));
    case MPSGraphResizeNearestRoundingModeFloor:
      return std::lrint(std::floor(place));
    case MPSGraphResizeNearestRoundingModeRoundToEven:
      return std::lrint(std::nearbyint(place));
    default:
      refuse("nearest rounding mode " + std::to_string(mode) + " is not simulated");
  }
}

Taps taps_of(const Resize& resize, int64_t from, int64_t to, float scale, float offset) {
  Shape low(to), high(to);
  std::vector<float> weight(to);
  const bool of_one = resize.from_sizes && resize.corners && from == 1 && to > 1;
  const bool lone = of_one && is_beyond("resize", "aligned corners of one element", 1);
  for (int64_t k = 0; k < to; ++k) {
    const auto place = static_cast<float>(k);
    float at = (place - offset) / scale;
    if (resize.from_sizes) {
      const auto ratio = static_cast<float>(from) / static_cast<float>(to);
      at = resize.centers ? (place + 0.5f) * ratio - 0.5f : place * ratio;
    }
    if (resize.from_sizes && resize.corners) {
      at = to > 1 ? place * static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0;
    }
    at = std::isfinite(at) ? at : 0; // of a scale that is not known while the graph is made
    if (resize.bilinear) {
      at = std::min(std::max(at, 0.0f), static_cast<float>(from - 1));
      low[k] = static_cast<int64_t>(at);
      high[k] = std::min(low[k] + 1, from - 1);
      weight[k] = lone ? NAN : at - static_cast<float>(low[k]);
    } else {
      low[k] = high[k] = std::min(std::max<int64_t>(rounded(at, resize.rounding), 0), from - 1);
    }
  }
  return {at::tensor(low, at::kLong), at::tensor(high, at::kLong), at::tensor(weight)};
}

// The taps of height and width.
std::array<Taps, 2> taps_of(const Resize& resize, const Shape& from, const Shape& to, const Tensor& scales) {
  std::array<Taps, 2> taps;
  for (int64_t d = 0; d < 2; ++d) {
    const float scale = resize.from_sizes ? 1 : scales[d].item<float>();
    const float offset = resize.from_sizes ? 0 : scales[d + 2].item<float>();
    taps[d] = taps_of(resize, from[d], to[d], scale, offset);
  }
  return taps;
}

Tensor weights_along(const Taps& taps, const Tensor& x, int64_t axis) {
  Shape ones(x.dim(), 1);
  ones.at(axis) = taps.weight.numel();
  return taps.weight.reshape(ones);
}

Tensor resized(const Tensor& x, const Resize& resize, const Shape& to, const Tensor& scales) {
  const int64_t first = resize.height_axis;
  const auto taps = taps_of(resize, {x.size(first), x.size(first + 1)}, to, scales);
  if (!resize.bilinear) {
    return x.index_select(first, taps[0].low).index_select(first + 1, taps[1].low);
  }
  Tensor y = x.to(at::kFloat);
  for (int64_t d = 0; d < 2; ++d) {
    const Tensor weight = weights_along(taps[d], y, first + d);
    y = y.index_select(first + d, taps[d].low) * (1 - weight) + y.index_select(first + d, taps[d].high) * weight;
  }
  return y.to(x.scalar_type());
}

Tensor resized_back(const Tensor& gradient, const Resize& resize, const Shape& shape, const Tensor& scales) {
  const int64_t first = resize.height_axis;
  const Shape to = {gradient.size(first), gradient.size(first + 1)};
  const auto taps = taps_of(resize, {shape.at(first), shape.at(first + 1)}, to, scales);
  Tensor g = gradient.to(at::kFloat);
  for (int64_t d = 0; d < 2; ++d) {
    const int64_t axis = first + d;
    Shape sizes = g.sizes().vec();
    sizes.at(axis) = shape.at(axis);
    const Tensor weight = weights_along(taps[d], g, axis);
    g = at::zeros(sizes, g.options())
            .index_add(axis, taps[d].low, g * (1 - weight))
            .index_add(axis, taps[d].high, g * weight);
  }
  return g.to(gradient.scalar_type());
}

MPSGraphTensor* resize_node(
    MPSGraph* graph, const Resize& resize, MPSGraphTensor* images, MPSGraphTensor* size, MPSGraphTensor* scales) {
  std::vector<MPSGraphTensor*> operands = {images, size};
  if (scales != nil) {
    operands.push_back(scales);
  }
  return shaped_by_values(graph, "resize", images->type_, operands, {size}, [resize](const Tensors& inputs) {
    return resized(inputs[0], resize, elements(inputs[1]), inputs.back());
  });
}
MPSGraphTensor* gradient_node(
    MPSGraph* graph, const Resize& resize, MPSGraphTensor* gradient, MPSGraphTensor* input, MPSGraphTensor* scales) {
  std::vector<MPSGraphTensor*> operands = {gradient, input};
  if (scales != nil) {
    operands.push_back(scales);
  }
  return result_of(graph, "resizeGradient", operands, [resize](const Tensors& inputs) {
    return resized_back(inputs[0], resize, inputs[1].sizes().vec(), inputs.back());
  });
}

constexpr auto kFloor = MPSGraphResizeNearestRoundingModeFloor;
constexpr auto kNearest = MPSGraphResizeNearestRoundingModeRoundPreferCeil; // where a message names none

// Coordinates are normalized, absolute, and named as torch names them.
MPSGraphTensor* sampled(
    MPSGraph* graph,
    MPSGraphTensor* source,
    MPSGraphTensor* places,
    MPSGraphTensorNamedDataLayout layout,
    MPSGraphPaddingMode padding,
    int64_t interpolation,
    bool corners) {
  const int64_t mode = padding == MPSGraphPaddingModeZero ? 0 : padding == MPSGraphPaddingModeClampToEdge ? 1 : 2;
  const auto reflection = corners ? MPSGraphPaddingModeReflect : MPSGraphPaddingModeSymmetric;
  if (layout != MPSGraphTensorNamedDataLayoutNCHW || (mode == 2 && padding != reflection)) {
    refuse("sampleGrid with this layout or padding mode is not simulated");
  }
  return binary(graph, "sampleGrid", source, places, [=](const Tensor& x, const Tensor& grid) {
    return at::grid_sampler_2d(x, grid, interpolation, mode, corners);
  });
}
void require_torch_coordinates(bool normalized, bool relative, double constant) {
  if (!normalized || relative || constant != 0) {
    refuse("sampleGrid takes normalized absolute coordinates and the constant 0 here");
  }
}

} // namespace

@implementation MPSGraph (MPSGraphResizeOps)
- (MPSGraphTensor*)resizeTensor:(MPSGraphTensor*)imagesTensor
                           size:(MPSShape*)size
                           mode:(MPSGraphResizeMode)mode
                   centerResult:(BOOL)centerResult
                   alignCorners:(BOOL)alignCorners
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString*)name {
  MPSGraphTensor* sizes = constant(self, at::tensor(numbers(size), at::kInt));
  return [self resizeTensor:imagesTensor
                 sizeTensor:sizes
                       mode:mode
               centerResult:centerResult
               alignCorners:alignCorners
                     layout:layout
                       name:name];
}
- (MPSGraphTensor*)resizeTensor:(MPSGraphTensor*)imagesTensor
                     sizeTensor:(MPSGraphTensor*)size
                           mode:(MPSGraphResizeMode)mode
                   centerResult:(BOOL)centerResult
                   alignCorners:(BOOL)alignCorners
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString*)name {
  const Resize resize = {
      mode == MPSGraphResizeBilinear, (bool)centerResult, (bool)alignCorners, true, kNearest, height_axis(layout)};
  return resize_node(self, resize, imagesTensor, size, nil);
}
- (MPSGraphTensor*)resizeWithGradientTensor:(MPSGraphTensor*)gradient
                                      input:(MPSGraphTensor*)input
                                       mode:(MPSGraphResizeMode)mode
                               centerResult:(BOOL)centerResult
                               alignCorners:(BOOL)alignCorners
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  const Resize resize = {
      mode == MPSGraphResizeBilinear, (bool)centerResult, (bool)alignCorners, true, kNearest, height_axis(layout)};
  return gradient_node(self, resize, gradient, input, nil);
}
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                              centerResult:(BOOL)centerResult
                              alignCorners:(BOOL)alignCorners
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  const Resize resize = {false, (bool)centerResult, (bool)alignCorners, true, nearestRoundingMode, height_axis(layout)};
  return resize_node(self, resize, imagesTensor, size, nil);
}
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                         scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  const Resize resize = {false, false, false, false, nearestRoundingMode, height_axis(layout)};
  return resize_node(self, resize, imagesTensor, size, scaleOffset);
}
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                      centerResult:(BOOL)centerResult
                                      alignCorners:(BOOL)alignCorners
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  const Resize resize = {false, (bool)centerResult, (bool)alignCorners, true, nearestRoundingMode, height_axis(layout)};
  return gradient_node(self, resize, gradient, input, nil);
}
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                                 scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  const Resize resize = {false, false, false, false, nearestRoundingMode, height_axis(layout)};
  return gradient_node(self, resize, gradient, input, scaleOffset);
}
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                               centerResult:(BOOL)centerResult
                               alignCorners:(BOOL)alignCorners
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  const Resize resize = {true, (bool)centerResult, (bool)alignCorners, true, kFloor, height_axis(layout)};
  return resize_node(self, resize, imagesTensor, size, nil);
}
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                          scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  const Resize resize = {true, false, false, false, kFloor, height_axis(layout)};
  return resize_node(self, resize, imagesTensor, size, scaleOffset);
}
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                       centerResult:(BOOL)centerResult
                                       alignCorners:(BOOL)alignCorners
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  const Resize resize = {true, (bool)centerResult, (bool)alignCorners, true, kFloor, height_axis(layout)};
  return gradient_node(self, resize, gradient, input, nil);
}
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                  scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  const Resize resize = {true, false, false, false, kFloor, height_axis(layout)};
  return gradient_node(self, resize, gradient, input, scaleOffset);
}
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                                 samplingMode:(MPSGraphResizeMode)samplingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  require_torch_coordinates(normalizeCoordinates, relativeCoordinates, constantValue);
  const int64_t interpolation = samplingMode == MPSGraphResizeBilinear ? 0 : 1;
  return sampled(self, source, coordinates, layout, paddingMode, interpolation, alignCorners);
}
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                          nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  require_torch_coordinates(normalizeCoordinates, relativeCoordinates, constantValue);
  if (nearestRoundingMode != MPSGraphResizeNearestRoundingModeRoundToEven) {
    refuse("sampleGrid takes the nearest element with ties to even here");
  }
  return sampled(self, source, coordinates, layout, paddingMode, 1, alignCorners);
}
@end
