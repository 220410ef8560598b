// The stand-in's graphs: nodes of closures over CPU tensors. The shapes and types of results are inferred when a node is
// made. Compiled with ARC, for any target with clang and ATen.
#pragma once
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mpsgraph {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Shape = std::vector<int64_t>;
using Compute = std::function<Tensors(const Tensors&)>;

// An operation; without `compute`, a placeholder. `constants`: its results if no placeholder decides them.
struct Node {
  std::string operation;
  std::vector<MPSGraphTensor*> operands;
  Compute compute;
  std::optional<Tensors> constants;
};

// The message of an error, without the stack of a c10::Error.
std::string message_of(const std::exception& error);
// Raises what on a Mac is an assertion of MPSGraph, which ends the process there.
[[noreturn]] void refuse(const std::string& message);

c10::ScalarType scalar_type(MPSDataType type);
MPSDataType data_type(c10::ScalarType type);
// The numbers of an array; none of nil.
Shape numbers(NSArray* array);
NSArray<NSNumber*>* array_of(at::IntArrayRef numbers);
std::string text_of(at::IntArrayRef shape);
// The elements of a tensor of whole numbers, such as a shape that is computed in the graph.
Shape elements(const Tensor& tensor);
// A negative axis counts from the end.
int64_t wrapped(int64_t axis, int64_t rank);
bool is_whole(const Tensor& x);
// Copies along a dimension with a counter of 16 bits: elements beyond it overwrite the first ones. No order is known of
// MPSGraph; that the later ones stay is what reports show.
constexpr int64_t kWrap = 65536;
void copy_wrapped(const Tensor& destination, const Tensor& source, int64_t dim);
// Whether a limit of this macOS changes the results of an operation. Raises if it ends the process (limits.yaml).
bool is_beyond(const std::string& operation, const char* measure, int64_t value);
// Raises if an axis lies further out than the operation takes.
void require_inner_axes(const char* operation, const Tensor& x, const Shape& axes);

// The graph that a call would make itself, where the one that runs came out of a cache and caches are checked; or nil.
MPSGraph* other_graph_of(MPSGraph* graph);
// Raise if the graph out of the cache has other operations than the call's own, or gives another result.
void require_same_structure(MPSGraph* cached, MPSGraph* fresh);
void require_same_result(const std::string& operation, const Tensor& result, const Tensor& of_other);

// A tensor of the graph without operands, which has to be fed.
MPSGraphTensor* placeholder(MPSGraph* graph, c10::ScalarType type, std::optional<Shape> shape);
// The results of an operation.
NSArray<MPSGraphTensor*>* results_of(
    MPSGraph* graph, const char* operation, std::vector<MPSGraphTensor*> operands, size_t count, Compute compute);
MPSGraphTensor* result_of(
    MPSGraph* graph,
    const char* operation,
    std::vector<MPSGraphTensor*> operands,
    std::function<Tensor(const Tensors&)> compute);
MPSGraphTensor* unary(
    MPSGraph* graph, const char* operation, MPSGraphTensor* x, std::function<Tensor(const Tensor&)> compute);
// Raises if the operands have different types.
MPSGraphTensor* binary(
    MPSGraph* graph,
    const char* operation,
    MPSGraphTensor* x,
    MPSGraphTensor* y,
    std::function<Tensor(const Tensor&, const Tensor&)> compute);
// A result whose shape the values of some operands decide. It is unknown unless these are constants.
MPSGraphTensor* shaped_by_values(
    MPSGraph* graph,
    const char* operation,
    c10::ScalarType type,
    std::vector<MPSGraphTensor*> operands,
    const std::vector<MPSGraphTensor*>& deciding,
    std::function<Tensor(const Tensors&)> compute);
MPSGraphTensor* constant(MPSGraph* graph, const Tensor& value);
// Raises if tensors have different types: MPSGraph converts no operand.
void require_one_type(const char* operation, const std::vector<MPSGraphTensor*>& operands);

// In its scope torch's operators are neither recorded as calls of host code nor differentiated.
struct UnrecordedGuard {
  const c10::impl::ExcludeDispatchKeyGuard no_autograd{c10::autograd_dispatch_keyset};
  const at::RecordFunctionGuard unrecorded{false};
};
// The scope of a graph, or a kernel of MPS, that runs: it is counted.
struct RunGuard : UnrecordedGuard { RunGuard(); };

} // namespace mpsgraph

@interface MPSGraphTensor () {
 @public
  std::shared_ptr<mpsgraph::Node> node_;
  size_t output_;
  c10::ScalarType type_;
  std::optional<mpsgraph::Shape> shape_; // -1: an unknown length
}
@end

@interface MPSGraph () {
 @public
  std::vector<MPSGraphTensor*> tensors_; // host code keeps tensors without retaining them
  uint64_t reuses_; // how often a cache gave it to a call
}
@end

@interface MPSGraphTensorData () {
 @public
  at::Tensor tensor_; // shares the memory of the buffer
  id buffer_;
  bool is_gathered_; // a copy of a view that only host code's placeholder has
}
@end

// Declared here, because a subclass in another file has to know how large its superclass is: the runtime moves no fields.
@interface MPSKernel () {
 @protected
  id<MTLDevice> _device;
  NSString* _label;
}
@end

@interface MPSNDArrayDescriptor () {
 @public
  mpsgraph::Shape shape_, order_; // outermost first; which dimension of the array each one is
  std::vector<std::pair<int64_t, MPSDimensionSlice>> slices_; // of a view, by dimension
}
@end

@interface MPSNDArray () {
 @public
  at::Tensor tensor_;
  id buffer_;
  NSUInteger bytes_; // from the first element to the end of the buffer
}
- (MPSNDArray*)simulatedViewOf:(at::Tensor)tensor;
@end
