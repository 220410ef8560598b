// Matrices in buffers, and the kernels that decompose and solve them. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>
#include <tuple>

#include "graph.h"

using namespace mpsgraph;

@interface MPSMatrixDescriptor ()
@property(readwrite, nonatomic) NSUInteger matrices;
@property(readwrite, nonatomic) NSUInteger matrixBytes;
@end

@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType {
  return [self matrixDescriptorWithRows:rows
                                columns:columns
                               matrices:1
                               rowBytes:rowBytes
                            matrixBytes:rows * rowBytes
                               dataType:dataType];
}
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)dataType {
  MPSMatrixDescriptor* descriptor = [self new];
  descriptor.rows = rows;
  descriptor.columns = columns;
  descriptor.matrices = matrices;
  descriptor.rowBytes = rowBytes;
  descriptor.matrixBytes = matrixBytes;
  descriptor.dataType = dataType;
  return descriptor;
}
@end

@interface MPSMatrix () {
 @public
  Tensor tensor_; // [matrices, rows, columns]
  id buffer_;
}
@end

@implementation MPSMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor {
  return [self initWithBuffer:buffer offset:0 descriptor:descriptor];
}
// Host code describes a whole batch from each of its matrices on: those beyond the end of the buffer are left out.
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor {
  const auto type = scalar_type(descriptor.dataType);
  const auto size = static_cast<int64_t>(c10::elementSize(type));
  const NSUInteger one = (descriptor.rows - 1) * descriptor.rowBytes + descriptor.columns * size;
  if (offset + one > buffer.length) {
    refuse(
        "a matrix of " + std::to_string(descriptor.rows) + " rows and " + std::to_string(descriptor.columns) +
        " columns at byte " + std::to_string(offset) + " reaches beyond the " + std::to_string(buffer.length) +
        " bytes of its buffer");
  }
  const NSUInteger whole = 1 + (buffer.length - offset - one) / std::max<NSUInteger>(descriptor.matrixBytes, 1);
  const auto matrices = static_cast<int64_t>(std::min<NSUInteger>(descriptor.matrices, whole));
  const Shape shape = {matrices, (int64_t)descriptor.rows, (int64_t)descriptor.columns};
  const Shape strides = {(int64_t)descriptor.matrixBytes / size, (int64_t)descriptor.rowBytes / size, 1};
  buffer_ = buffer;
  tensor_ = at::from_blob(static_cast<char*>(buffer.contents) + offset, shape, strides, at::dtype(type));
  return self;
}
@end

// How many matrices a kernel works on: by default as many as all of its operands have.
static NSUInteger batch_size(NSUInteger asked, NSUInteger start, std::initializer_list<MPSMatrix*> operands) {
  for (MPSMatrix* matrix : operands) {
    const auto count = static_cast<NSUInteger>(matrix->tensor_.size(0));
    asked = std::min(asked, count > start ? count - start : 0);
  }
  return asked;
}
static Tensor batch_of(MPSMatrix* matrix, NSUInteger start, NSUInteger size) {
  return matrix->tensor_.narrow(0, static_cast<int64_t>(start), static_cast<int64_t>(size));
}
static constexpr NSUInteger kWholeBatch = NSUIntegerMax;

@implementation MPSMatrixUnaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  self = [super initWithDevice:device];
  _batchSize = kWholeBatch;
  return self;
}
@end

@implementation MPSMatrixBinaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  self = [super initWithDevice:device];
  _batchSize = kWholeBatch;
  return self;
}
@end

@implementation MPSMatrixMultiplication {
  bool left_, right_;
  int64_t rows_, columns_, interior_;
  double alpha_, beta_;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta {
  self = [super initWithDevice:device];
  _batchSize = kWholeBatch;
  std::tie(left_, right_, alpha_, beta_) = std::tuple(transposeLeft, transposeRight, alpha, beta);
  std::tie(rows_, columns_, interior_) = std::tuple(resultRows, resultColumns, interiorColumns);
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix*)leftMatrix
                  rightMatrix:(MPSMatrix*)rightMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix {
  const RunGuard guard;
  const auto start = self.batchStart;
  const auto size = batch_size(self.batchSize, start, {leftMatrix, rightMatrix, resultMatrix});
  const auto part = [&](MPSMatrix* matrix, bool transposed, int64_t rows, int64_t columns) {
    const Tensor whole = batch_of(matrix, start, size);
    return (transposed ? whole.mT() : whole).narrow(1, 0, rows).narrow(2, 0, columns);
  };
  const Tensor a = part(leftMatrix, left_, rows_, interior_), b = part(rightMatrix, right_, interior_, columns_);
  const Tensor result = part(resultMatrix, false, rows_, columns_);
  // What is there is not read where beta is 0.
  const Tensor product = at::matmul(a.to(at::kFloat), b.to(at::kFloat)) * alpha_;
  result.copy_(beta_ == 0 ? product : product + result.to(at::kFloat) * beta_);
}
@end

@implementation MPSMatrixDecompositionLU
- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns {
  return [self initWithDevice:device];
}
// Pivots count from 0, torch's from 1. The status is that of the last matrix that failed.
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
                       status:(id<MTLBuffer>)status {
  const RunGuard guard;
  const auto start = self.batchStart;
  const auto size = batch_size(self.batchSize, start, {sourceMatrix, resultMatrix, pivotIndices});
  const Tensor source = batch_of(sourceMatrix, start, size).contiguous();
  const auto [factors, pivots, failed] = at::linalg_lu_factor_ex(source);
  batch_of(resultMatrix, start, size).copy_(factors);
  batch_of(pivotIndices, start, size).copy_((pivots - 1).unsqueeze(1));
  if (status != nil) {
    *static_cast<int*>(status.contents) = failed.any().item<bool>() ? (int)MPSMatrixDecompositionStatusSingular
                                                                    : (int)MPSMatrixDecompositionStatusSuccess;
  }
}
@end

@implementation MPSMatrixSolveTriangular {
  bool right_, upper_, transpose_, unit_;
  double alpha_;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides
                         alpha:(double)alpha {
  self = [self initWithDevice:device];
  right_ = right;
  upper_ = upper;
  transpose_ = transpose;
  unit_ = unit;
  alpha_ = alpha;
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
               solutionMatrix:(MPSMatrix*)solutionMatrix {
  const RunGuard guard;
  const auto start = self.batchStart;
  // torch encodes one solve for each matrix of a batch, and describes each as a whole batch from there on. Its tests on
  // Macs pass, in place too. So a call solves one matrix, unless it asks for more.
  const auto asked = self.batchSize == kWholeBatch ? 1 : self.batchSize;
  const auto size = batch_size(asked, start, {sourceMatrix, rightHandSideMatrix, solutionMatrix});
  const Tensor matrix = batch_of(sourceMatrix, start, size);
  const Tensor a = transpose_ ? matrix.mT() : matrix, b = batch_of(rightHandSideMatrix, start, size) * alpha_;
  batch_of(solutionMatrix, start, size).copy_(at::linalg_solve_triangular(a, b, upper_ != transpose_, !right_, unit_));
}
@end

@implementation MPSMatrixSolveLU {
  bool transpose_;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides {
  self = [self initWithDevice:device];
  transpose_ = transpose;
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
               solutionMatrix:(MPSMatrix*)solutionMatrix {
  const RunGuard guard;
  const auto start = self.batchStart;
  const auto size =
      batch_size(self.batchSize, start, {sourceMatrix, rightHandSideMatrix, pivotIndices, solutionMatrix});
  const Tensor factors = batch_of(sourceMatrix, start, size).contiguous();
  const Tensor pivots = (batch_of(pivotIndices, start, size).to(at::kInt) + 1).squeeze(1);
  const Tensor sides = batch_of(rightHandSideMatrix, start, size).contiguous();
  batch_of(solutionMatrix, start, size).copy_(at::linalg_lu_solve(factors, pivots, sides, true, transpose_));
}
@end
