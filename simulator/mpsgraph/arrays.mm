// Arrays in buffers, with views, and the kernels that take them. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "graph.h"

using namespace mpsgraph;

@implementation MPSNDArrayDescriptor
+ (instancetype)descriptorWithDataType:(MPSDataType)dataType shape:(NSArray<NSNumber*>*)shape {
  MPSNDArrayDescriptor* descriptor = [self new];
  descriptor.dataType = dataType;
  descriptor->shape_ = numbers(shape);
  descriptor->order_.resize(descriptor->shape_.size());
  std::iota(descriptor->order_.begin(), descriptor->order_.end(), 0);
  return descriptor;
}
- (NSUInteger)numberOfDimensions {
  return shape_.size();
}
- (NSArray<NSNumber*>*)getShape {
  return array_of(shape_);
}
// Dimension 0 of these three methods is the innermost one.
- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex {
  return dimensionIndex < shape_.size() ? shape_[shape_.size() - 1 - dimensionIndex] : 1;
}
- (void)transposeDimension:(NSUInteger)dimensionIndex withDimension:(NSUInteger)dimensionIndex2 {
  const size_t last = shape_.size() - 1;
  std::swap(shape_.at(last - dimensionIndex), shape_.at(last - dimensionIndex2));
  std::swap(order_.at(last - dimensionIndex), order_.at(last - dimensionIndex2));
}
- (void)sliceDimension:(NSUInteger)dimensionIndex withSubrange:(MPSDimensionSlice)subRange {
  const size_t dimension = shape_.size() - 1 - dimensionIndex;
  shape_.at(dimension) = subRange.length;
  slices_.emplace_back(dimension, subRange);
}
@end

@implementation MPSNDArray
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor*)descriptor {
  tensor_ = at::zeros(descriptor->shape_, at::dtype(scalar_type(descriptor.dataType)));
  bytes_ = tensor_.nbytes();
  return self;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device scalar:(double)value {
  tensor_ = at::full({1}, value, at::kFloat);
  bytes_ = tensor_.nbytes();
  return self;
}
// The shape may be larger than the buffer: host code describes a whole storage from an offset on, and takes a view.
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor {
  is_beyond("initWithBuffer:offset:descriptor:", "use", 1);
  if (offset > buffer.length) {
    refuse(
        "an array begins at byte " + std::to_string(offset) + " of a buffer of " + std::to_string(buffer.length) +
        " bytes");
  }
  buffer_ = buffer;
  bytes_ = buffer.length - offset;
  // What the descriptor transposed is only read in another order.
  Shape in_memory(descriptor->shape_.size());
  for (size_t d = 0; d < in_memory.size(); ++d) {
    in_memory[descriptor->order_[d]] = descriptor->shape_[d];
  }
  const auto type = at::dtype(scalar_type(descriptor.dataType));
  tensor_ = at::from_blob(static_cast<char*>(buffer.contents) + offset, in_memory, type).permute(descriptor->order_);
  return self;
}
- (MPSNDArray*)simulatedViewOf:(at::Tensor)tensor {
  MPSNDArray* view = [MPSNDArray new];
  view->buffer_ = buffer_;
  view->bytes_ = bytes_;
  view->tensor_ = std::move(tensor);
  return view;
}
- (MPSNDArrayDescriptor*)descriptor {
  return [MPSNDArrayDescriptor descriptorWithDataType:self.dataType shape:array_of(tensor_.sizes())];
}
- (MPSDataType)dataType {
  return data_type(tensor_.scalar_type());
}
- (NSUInteger)numberOfDimensions {
  return tensor_.dim();
}
- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex {
  return [[self descriptor] lengthOfDimension:dimensionIndex];
}
- (MPSNDArray*)arrayViewWithShape:(MPSShape*)shape strides:(MPSShape*)strides {
  is_beyond("arrayViewWithShape:strides:", "use", 1);
  const Shape sizes = numbers(shape), steps = numbers(strides);
  if (!steps.empty() && steps.back() != 1) {
    refuse("arrayViewWithShape:strides: takes strides that end with 1, not " + text_of(steps));
  }
  Shape largest = steps;
  std::sort(largest.rbegin(), largest.rend());
  const bool counts = largest.size() > 1 && tensor_.dim() > 1;
  is_beyond("arrayViewWithShape:strides:", "product of two strides", counts ? largest[0] * largest[1] : 0);
  int64_t elements = sizes.empty() || c10::multiply_integers(sizes) > 0 ? 1 : 0;
  for (size_t d = 0; elements > 0 && d < sizes.size(); ++d) {
    elements += (sizes[d] - 1) * steps.at(d);
  }
  if (elements * static_cast<int64_t>(tensor_.element_size()) > static_cast<int64_t>(bytes_)) {
    refuse(
        "a view of shape " + text_of(sizes) + " and strides " + text_of(steps) + " reaches beyond the " +
        std::to_string(bytes_) + " bytes of its array");
  }
  return [self simulatedViewOf:at::from_blob(tensor_.data_ptr(), sizes, steps, tensor_.options())];
}
- (MPSNDArray*)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)cmdBuf
                               descriptor:(MPSNDArrayDescriptor*)descriptor
                                 aliasing:(MPSAliasingStrategy)aliasing {
  Tensor view = tensor_.permute(descriptor->order_);
  for (const auto& [dimension, slice] : descriptor->slices_) {
    view = view.narrow(dimension, slice.start, slice.length);
  }
  return [self simulatedViewOf:view];
}
- (void)readBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension {
  std::memcpy(buffer, tensor_.contiguous().const_data_ptr(), tensor_.nbytes());
}
- (void)writeBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension {
  tensor_.copy_(at::from_blob(buffer, tensor_.sizes(), tensor_.options()));
}
@end

@implementation MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  _device = device;
  return self;
}
- (id)copyWithZone:(void*)zone {
  return self;
}
@end

@implementation MPSNDArrayMultiaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  return [self initWithDevice:device];
}
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commandBuffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
              destinationArray:(MPSNDArray*)destination {
  refuse(std::string("this kernel of arrays is not simulated: ") + object_getClassName(self));
}
@end

@implementation MPSNDArrayUnaryKernel
@end

@implementation MPSNDArrayIdentity
- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)cmdBuf
                            sourceArray:(MPSNDArray*)sourceArray
                                  shape:(MPSShape*)shape
                       destinationArray:(MPSNDArray*)destinationArray {
  const Tensor reshaped = sourceArray->tensor_.reshape(numbers(shape));
  if (destinationArray == nil) {
    return [sourceArray simulatedViewOf:reshaped];
  }
  destinationArray->tensor_.copy_(reshaped);
  return destinationArray;
}
@end

@implementation MPSNDArrayMatrixMultiplication
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  self = [super initWithDevice:device sourceCount:count];
  _alpha = _beta = 1;
  return self;
}
// alpha * (first @ second), and beta * third where there is one.
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commandBuffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
              destinationArray:(MPSNDArray*)destination {
  const RunGuard guard;
  Tensor product = at::matmul(sourceArrays[0]->tensor_, sourceArrays[1]->tensor_);
  product = _alpha == 1 ? product : product * _alpha;
  if (sourceArrays.count > 2) {
    product = product + sourceArrays[2]->tensor_ * _beta;
  }
  product = product.reshape(destination->tensor_.sizes());
  const int64_t batch = product.dim() > 2 ? product.size(-3) : 1;
  const bool sums = sourceArrays.count > 2;
  if (sums && is_beyond("MPSNDArrayMatrixMultiplication", "batch of a product and a sum", batch)) {
    destination->tensor_.zero_(); // what is left on a Mac is memory that was used before
    copy_wrapped(destination->tensor_, product, -3);
    return;
  }
  destination->tensor_.copy_(product);
}
@end
