// Shapes: views, slices, joins, padding. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <algorithm>

#include "graph.h"

using namespace mpsgraph;

namespace {

// The parameters of a strided slice, by dimension. A set bit of a mask: from the first, to the last, drop the dimension.
struct Slice {
  Shape starts, ends, strides;
  uint32_t start_mask, end_mask, squeeze_mask;
};

Tensor sliced_dimension(const Tensor& x, const Slice& slice, size_t d) {
  const auto axis = static_cast<int64_t>(d);
  const int64_t length = x.size(axis), step = d < slice.strides.size() ? slice.strides[d] : 1;
  const bool from_first = slice.start_mask >> d & 1, to_last = slice.end_mask >> d & 1;
  if (step > 0) {
    const int64_t start = from_first ? 0 : wrapped(slice.starts[d], length);
    return x.slice(axis, start, to_last ? length : std::min(wrapped(slice.ends[d], length), length), step);
  }
  const int64_t start = from_first ? length - 1 : std::min(wrapped(slice.starts[d], length), length - 1);
  const int64_t end = to_last ? -1 : wrapped(slice.ends[d], length);
  Shape places;
  for (int64_t place = start; place > end; place += step) {
    places.push_back(place);
  }
  return x.index_select(axis, at::tensor(places, at::kLong));
}

Tensor sliced(Tensor x, const Slice& slice) {
  for (size_t d = 0; d < slice.starts.size(); ++d) {
    x = sliced_dimension(x, slice, d);
  }
  for (size_t d = slice.starts.size(); d-- > 0;) {
    x = slice.squeeze_mask >> d & 1 ? x.squeeze(static_cast<int64_t>(d)) : x;
  }
  return x;
}

// Which element a padded place repeats.
int64_t repeated(MPSGraphPaddingMode mode, int64_t place, int64_t length) {
  switch (mode) {
    case MPSGraphPaddingModeReflect:
      return place < 0 ? -place : place >= length ? 2 * (length - 1) - place : place;
    case MPSGraphPaddingModeSymmetric:
      return place < 0 ? -place - 1 : place >= length ? 2 * length - 1 - place : place;
    case MPSGraphPaddingModeClampToEdge:
      return std::clamp<int64_t>(place, 0, length - 1);
    case MPSGraphPaddingModePeriodic:
      return (place % length + length) % length;
    default:
      refuse("padding mode " + std::to_string(mode) + " is not simulated");
  }
}

Tensor padded_dimension(
    const Tensor& x, MPSGraphPaddingMode mode, int64_t axis, int64_t left, int64_t right, double value) {
  if (mode == MPSGraphPaddingModeConstant || mode == MPSGraphPaddingModeZero) {
    Shape pads(2 * (x.dim() - axis), 0);
    pads[pads.size() - 2] = left;
    pads[pads.size() - 1] = right;
    return at::constant_pad_nd(x, pads, mode == MPSGraphPaddingModeZero ? 0 : value);
  }
  Shape places;
  for (int64_t place = -left; place < x.size(axis) + right; ++place) {
    places.push_back(repeated(mode, place, x.size(axis)));
  }
  return x.index_select(axis, at::tensor(places, at::kLong));
}

Tensor padded(Tensor x, MPSGraphPaddingMode mode, const Shape& left, const Shape& right, double value) {
  for (int64_t axis = 0; axis < x.dim(); ++axis) {
    if (left.at(axis) != 0 || right.at(axis) != 0) {
      x = padded_dimension(x, mode, axis, left[axis], right[axis], value);
    }
  }
  return x;
}

// The numbers 0, 1, ... along one axis.
Tensor coordinates(int64_t axis, const Shape& shape) {
  const int64_t d = wrapped(axis, static_cast<int64_t>(shape.size()));
  Shape ones(shape.size(), 1);
  ones.at(d) = shape[d];
  return at::arange(shape[d], at::kInt).reshape(ones).expand(shape);
}

// Channels, height and width as the last three dimensions, and back.
Tensor with_blocks_last(const Tensor& x, const Shape& axes) {
  const int64_t rank = x.dim();
  return x.movedim(axes, {rank - 3, rank - 2, rank - 1});
}
Tensor with_blocks_back(const Tensor& x, const Shape& axes) {
  const int64_t rank = x.dim();
  return x.movedim({rank - 3, rank - 2, rank - 1}, axes);
}

} // namespace

@implementation MPSGraph (MPSGraphTensorShapeOps)
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name {
  const auto to = scalar_type(type);
  if (tensor->type_ == to) {
    return tensor; // so that a graph with such a cast equals one without
  }
  return unary(self, "cast", tensor, [to](const Tensor& x) {
    return x.is_complex() && !c10::isComplexType(to) ? at::real(x).to(to) : x.to(to);
  });
}
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor withShape:(MPSShape*)shape name:(NSString*)name {
  const Shape to = numbers(shape);
  return unary(self, "reshape", tensor, [to](const Tensor& x) { return x.reshape(to); });
}
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                 withShapeTensor:(MPSGraphTensor*)shapeTensor
                            name:(NSString*)name {
  return shaped_by_values(
      self, "reshape", tensor->type_, {tensor, shapeTensor}, {shapeTensor},
      [](const Tensors& inputs) { return inputs[0].reshape(elements(inputs[1])); });
}
- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name {
  const auto a = static_cast<int64_t>(dimensionIndex), b = static_cast<int64_t>(dimensionIndex2);
  return unary(self, "transpose", tensor, [a, b](const Tensor& x) { return x.transpose(a, b); });
}
- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                       permutation:(NSArray<NSNumber*>*)permutation
                              name:(NSString*)name {
  const Shape order = numbers(permutation);
  return unary(self, "transpose", tensor, [order](const Tensor& x) { return x.permute(order); });
}
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name {
  const auto axis = static_cast<int64_t>(dimensionIndex);
  return unary(self, "slice", tensor, [axis, start, length](const Tensor& x) { return x.narrow(axis, start, length); });
}
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                          name:(NSString*)name {
  const Slice slice = {numbers(starts), numbers(ends), numbers(strides), 0, 0, 0};
  return unary(self, "slice", tensor, [slice](const Tensor& x) { return sliced(x, slice); });
}
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                     startMask:(uint32_t)startMask
                       endMask:(uint32_t)endMask
                   squeezeMask:(uint32_t)squeezeMask
                          name:(NSString*)name {
  const Slice slice = {numbers(starts), numbers(ends), numbers(strides), startMask, endMask, squeezeMask};
  return unary(self, "slice", tensor, [slice](const Tensor& x) { return sliced(x, slice); });
}
- (MPSGraphTensor*)sliceGradientTensor:(MPSGraphTensor*)inputGradientTensor
                      fwdInShapeTensor:(MPSGraphTensor*)fwdInShapeTensor
                                starts:(NSArray<NSNumber*>*)starts
                                  ends:(NSArray<NSNumber*>*)ends
                               strides:(NSArray<NSNumber*>*)strides
                             startMask:(uint32_t)startMask
                               endMask:(uint32_t)endMask
                           squeezeMask:(uint32_t)squeezeMask
                                  name:(NSString*)name {
  const Slice slice = {numbers(starts), numbers(ends), numbers(strides), startMask, endMask, squeezeMask};
  const auto type = inputGradientTensor->type_;
  return shaped_by_values(
      self, "sliceGradient", type, {inputGradientTensor, fwdInShapeTensor}, {fwdInShapeTensor},
      [slice](const Tensors& inputs) {
        const Shape shape = elements(inputs[1]);
        // Slicing the places instead of the values works for negative strides, too.
        const Tensor places = at::arange(c10::multiply_integers(shape), at::kLong).reshape(shape);
        Tensor flat = at::zeros({places.numel()}, inputs[0].options());
        flat.index_put_({sliced(places, slice).reshape({-1})}, inputs[0].reshape({-1}));
        return flat.reshape(shape);
      });
}
- (MPSGraphTensor*)concatTensor:(MPSGraphTensor*)tensor
                     withTensor:(MPSGraphTensor*)tensor2
                      dimension:(NSInteger)dimensionIndex
                           name:(NSString*)name {
  return [self concatTensors:@[ tensor, tensor2 ] dimension:dimensionIndex name:name];
}
static std::vector<MPSGraphTensor*> of_one_type(const char* operation, NSArray<MPSGraphTensor*>* tensors) {
  std::vector<MPSGraphTensor*> operands;
  for (MPSGraphTensor* tensor in tensors) {
    operands.push_back(tensor);
  }
  require_one_type(operation, operands);
  return operands;
}
- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                            name:(NSString*)name {
  return result_of(self, "concat", of_one_type("concat", tensors), [dimensionIndex](const Tensors& inputs) {
    return at::cat(inputs, dimensionIndex);
  });
}
- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                      interleave:(BOOL)interleave
                            name:(NSString*)name {
  if (!interleave) {
    return [self concatTensors:tensors dimension:dimensionIndex name:name];
  }
  return result_of(self, "concat", of_one_type("concat", tensors), [dimensionIndex](const Tensors& inputs) {
    const int64_t axis = wrapped(dimensionIndex, inputs[0].dim());
    return at::stack(inputs, axis + 1).flatten(axis, axis + 1);
  });
}
- (MPSGraphTensor*)stackTensors:(NSArray<MPSGraphTensor*>*)inputTensors axis:(NSInteger)axis name:(NSString*)name {
  return result_of(self, "stack", of_one_type("stack", inputTensors), [axis](const Tensors& inputs) {
    return at::stack(inputs, axis);
  });
}
- (NSArray<MPSGraphTensor*>*)splitTensor:(MPSGraphTensor*)tensor
                               numSplits:(NSUInteger)numSplits
                                    axis:(NSInteger)axis
                                    name:(NSString*)name {
  return results_of(self, "split", {tensor}, numSplits, [numSplits, axis](const Tensors& inputs) {
    const auto count = static_cast<int64_t>(numSplits);
    if (inputs[0].size(axis) % count != 0) {
      refuse("split: " + std::to_string(count) + " equal parts of length " + std::to_string(inputs[0].size(axis)));
    }
    return inputs[0].split(inputs[0].size(axis) / count, axis);
  });
}
- (NSArray<MPSGraphTensor*>*)splitTensor:(MPSGraphTensor*)tensor
                              splitSizes:(NSArray<NSNumber*>*)splitSizes
                                    axis:(NSInteger)axis
                                    name:(NSString*)name {
  const Shape sizes = numbers(splitSizes);
  return results_of(self, "split", {tensor}, sizes.size(), [sizes, axis](const Tensors& inputs) {
    return inputs[0].split_with_sizes(sizes, axis);
  });
}
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return unary(self, "squeeze", tensor, [](const Tensor& x) { return x.squeeze(); });
}
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "squeeze", tensor, [axis](const Tensor& x) { return x.squeeze(axis); });
}
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  const Shape dims = numbers(axes);
  return unary(self, "squeeze", tensor, [dims](const Tensor& x) { return x.squeeze(dims); });
}
- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "expandDims", tensor, [axis](const Tensor& x) { return x.unsqueeze(axis); });
}
- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  const Shape dims = numbers(axes); // of the result
  return unary(self, "expandDims", tensor, [dims](const Tensor& x) {
    Shape sorted = dims;
    for (int64_t& axis : sorted) {
      axis = wrapped(axis, x.dim() + static_cast<int64_t>(dims.size()));
    }
    std::sort(sorted.begin(), sorted.end());
    Tensor y = x;
    for (const int64_t axis : sorted) {
      y = y.unsqueeze(axis);
    }
    return y;
  });
}
- (MPSGraphTensor*)flatten2DTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return unary(self, "flatten2D", tensor, [axis](const Tensor& x) {
    const int64_t rows = c10::multiply_integers(x.sizes().slice(0, wrapped(axis, x.dim())));
    return x.reshape({rows, rows == 0 ? 0 : x.numel() / rows});
  });
}
- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor toShape:(MPSShape*)shape name:(NSString*)name {
  const Shape to = numbers(shape);
  return unary(self, "broadcast", tensor, [to](const Tensor& x) { return x.expand(to); });
}
- (MPSGraphTensor*)tileTensor:(MPSGraphTensor*)tensor withMultiplier:(MPSShape*)multiplier name:(NSString*)name {
  const Shape times = numbers(multiplier);
  return unary(self, "tile", tensor, [times](const Tensor& x) { return x.repeat(times); });
}
- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  const Shape dims = numbers(axes);
  return unary(self, "reverse", tensor, [dims](const Tensor& x) { return x.flip(dims); });
}
- (MPSGraphTensor*)shapeOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  if (tensor->shape_) {
    return constant(self, at::tensor(*tensor->shape_, at::kInt));
  }
  return shaped_by_values(self, "shapeOf", at::kInt, {tensor}, {tensor}, [](const Tensors& inputs) {
    return at::tensor(inputs[0].sizes(), at::kInt);
  });
}
- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis withShape:(MPSShape*)shape name:(NSString*)name {
  return constant(self, coordinates(axis, numbers(shape)));
}
- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis
                       withShapeTensor:(MPSGraphTensor*)shapeTensor
                                  name:(NSString*)name {
  return shaped_by_values(
      self, "coordinateAlongAxis", at::kInt, {shapeTensor}, {shapeTensor},
      [axis](const Tensors& inputs) { return coordinates(axis, elements(inputs[0])); });
}
- (MPSGraphTensor*)coordinateAlongAxisTensor:(MPSGraphTensor*)axisTensor
                             withShapeTensor:(MPSGraphTensor*)shapeTensor
                                        name:(NSString*)name {
  return shaped_by_values(
      self, "coordinateAlongAxis", at::kInt, {axisTensor, shapeTensor}, {axisTensor, shapeTensor},
      [](const Tensors& inputs) { return coordinates(inputs[0].item<int64_t>(), elements(inputs[1])); });
}
- (MPSGraphTensor*)padTensor:(MPSGraphTensor*)tensor
             withPaddingMode:(MPSGraphPaddingMode)paddingMode
                 leftPadding:(MPSShape*)leftPadding
                rightPadding:(MPSShape*)rightPadding
               constantValue:(double)constantValue
                        name:(NSString*)name {
  const Shape left = numbers(leftPadding), right = numbers(rightPadding);
  return unary(
      self, "pad", tensor, [=](const Tensor& x) { return padded(x, paddingMode, left, right, constantValue); });
}
// Each gradient goes to the element that its place repeats.
- (MPSGraphTensor*)padGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                            sourceTensor:(MPSGraphTensor*)sourceTensor
                                             paddingMode:(MPSGraphPaddingMode)paddingMode
                                             leftPadding:(MPSShape*)leftPadding
                                            rightPadding:(MPSShape*)rightPadding
                                                    name:(NSString*)name {
  const Shape left = numbers(leftPadding), right = numbers(rightPadding);
  return binary(self, "padGradient", incomingGradientTensor, sourceTensor, [=](const Tensor& g, const Tensor& x) {
    Shape source = g.sizes().vec(); // host code passes a larger source, where negative padding has cut it
    for (size_t d = 0; d < source.size(); ++d) {
      source[d] -= left.at(d) + right.at(d);
      if (source[d] <= 0) {
        refuse("the padding is not smaller than the gradient of shape " + text_of(g.sizes()));
      }
    }
    const int64_t elements = c10::multiply_integers(source);
    const Tensor numbered = at::arange(1, elements + 1, at::kLong).reshape(source); // 0: a constant
    const Tensor places = padded(numbered, paddingMode, left, right, 0);
    const auto accumulated = x.is_complex() ? at::kComplexDouble : at::kDouble;
    Tensor sums = at::zeros({elements + 1}, at::dtype(accumulated));
    sums.index_add_(0, places.reshape({-1}), g.to(accumulated).reshape({-1}));
    return sums.slice(0, 1).reshape(source).to(x.scalar_type());
  });
}
- (MPSGraphTensor*)spaceToDepth2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name {
  const Shape axes = {(int64_t)depthAxis, (int64_t)heightAxis, (int64_t)widthAxis};
  if (!usePixelShuffleOrder) {
    refuse("spaceToDepth2D without the order of a pixel shuffle is not simulated");
  }
  return unary(self, "spaceToDepth2D", tensor, [axes, blockSize](const Tensor& x) {
    return with_blocks_back(at::pixel_unshuffle(with_blocks_last(x, axes), (int64_t)blockSize), axes);
  });
}
- (MPSGraphTensor*)depthToSpace2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name {
  const Shape axes = {(int64_t)depthAxis, (int64_t)heightAxis, (int64_t)widthAxis};
  if (!usePixelShuffleOrder) {
    refuse("depthToSpace2D without the order of a pixel shuffle is not simulated");
  }
  return unary(self, "depthToSpace2D", tensor, [axes, blockSize](const Tensor& x) {
    return with_blocks_back(at::pixel_shuffle(with_blocks_last(x, axes), (int64_t)blockSize), axes);
  });
}
@end
