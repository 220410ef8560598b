// Graphs: their tensors, what is fed to them, and how they run. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <ATen/ExpandUtils.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <unordered_map>
#include <utility>

#include "graph.h"

using namespace mpsgraph;

static std::atomic<int64_t> runs{0};
mpsgraph::RunGuard::RunGuard() { ++runs; }
// How many graphs, and kernels of MPS, ran in this process.
extern "C" __attribute__((visibility("default"))) int64_t mpsgraph_simulator_runs() { return runs; }

// A result in a gathered copy of a view reaches no one: the most frequent silent error of PyTorch's mps backend.
static std::atomic<int64_t> results_lost{0};
extern "C" __attribute__((visibility("default"))) int64_t mpsgraph_simulator_results_lost() { return results_lost; }
static thread_local const void* last_gathered = nullptr;
// The data that this thread makes next over this memory are a gathered copy.
extern "C" __attribute__((visibility("default"))) void mpsgraph_simulator_note_gathered(const void* memory) {
  last_gathered = memory;
}

@implementation MPSGraphObject
@end

@implementation MPSGraphOperation
@end

@implementation MPSGraphTensor
- (id)copyWithZone:(void*)zone {
  return self;
}
- (MPSShape*)shape {
  return shape_ ? array_of(*shape_) : nil;
}
- (MPSDataType)dataType {
  return data_type(type_);
}
@end

@implementation MPSGraphTensorData
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  const Shape sizes = numbers(shape);
  const auto type = scalar_type(dataType);
  const NSUInteger needed = c10::multiply_integers(sizes) * c10::elementSize(type);
  if (needed > buffer.length) {
    refuse(
        "data of shape " + text_of(sizes) + " and type " + c10::toString(type) + " takes " + std::to_string(needed) +
        " bytes, and its buffer has " + std::to_string(buffer.length));
  }
  buffer_ = buffer;
  is_gathered_ = last_gathered != nullptr && last_gathered == buffer.contents;
  last_gathered = nullptr;
  tensor_ = at::from_blob(buffer.contents, sizes, at::dtype(type));
  return self;
}
- (instancetype)initWithMPSNDArray:(MPSNDArray*)ndarray {
  buffer_ = ndarray->buffer_;
  tensor_ = ndarray->tensor_;
  return self;
}
- (MPSNDArray*)mpsndarray {
  MPSNDArray* array = [MPSNDArray new];
  array->buffer_ = buffer_;
  array->tensor_ = tensor_;
  array->bytes_ = tensor_.nbytes();
  return array;
}
- (MPSShape*)shape {
  return array_of(tensor_.sizes());
}
- (MPSDataType)dataType {
  return data_type(tensor_.scalar_type());
}
@end

@implementation MPSGraphCompilationDescriptor
- (id)copyWithZone:(void*)zone {
  return self;
}
@end

// In no public header; PyTorch declares it itself.
@interface MPSGraphExecutionDescriptor ()
@property(readwrite, atomic) BOOL enableCommitAndContinue;
@end
@implementation MPSGraphExecutionDescriptor
- (id)copyWithZone:(void*)zone {
  return self;
}
@end

namespace {

using Values = std::unordered_map<const Node*, Tensors>;

const Tensor& value_of(MPSGraphTensor* tensor, Values& values) {
  const Node* node = tensor->node_.get();
  const auto known = values.find(node);
  if (known != values.end()) {
    return known->second.at(tensor->output_);
  }
  if (!node->compute) {
    refuse("a placeholder of shape " + (tensor->shape_ ? text_of(*tensor->shape_) : "unknown") + " was not fed");
  }
  Tensors inputs;
  for (MPSGraphTensor* operand : node->operands) {
    inputs.push_back(value_of(operand, values));
  }
  try {
    return values.emplace(node, node->compute(inputs)).first->second.at(tensor->output_);
  } catch (const std::exception& error) {
    refuse(node->operation + ": " + message_of(error));
  }
}

bool fits(const std::optional<Shape>& declared, at::IntArrayRef fed) {
  if (!declared) {
    return true;
  }
  bool same = declared->size() == fed.size();
  for (size_t d = 0; same && d < fed.size(); ++d) {
    same = (*declared)[d] == -1 || (*declared)[d] == fed[d];
  }
  return same;
}

// A graph that host code took out of its cache for another call is found here.
void require_fit(MPSGraphTensor* placeholder, const Tensor& fed) {
  if (placeholder->type_ != fed.scalar_type()) {
    refuse(
        std::string("a placeholder of type ") + c10::toString(placeholder->type_) + " was fed with " +
        c10::toString(fed.scalar_type()));
  }
  if (!fits(placeholder->shape_, fed.sizes())) {
    refuse(
        "a placeholder of shape " + text_of(*placeholder->shape_) + " was fed with data of shape " +
        text_of(fed.sizes()));
  }
}

// Conversions of a result that no page of Apple's describes, and host code relies on: indices are Int32 and go into
// Int64; medians of narrow types are Int32 or Float.
bool is_converted(c10::ScalarType result, c10::ScalarType place) {
  return result == at::kInt ? c10::isIntegralType(place, false) : result == at::kFloat && place == at::kBFloat16;
}
// A result as its place takes it: also fewer elements in a larger place (fill), or another shape of as many elements.
Tensor placed(MPSGraphTensor* target, Tensor result, const Tensor& place) {
  const std::string& operation = target->node_->operation;
  if (result.scalar_type() != place.scalar_type()) {
    if (!is_converted(result.scalar_type(), place.scalar_type())) {
      refuse(
          "the result of " + operation + " has type " + c10::toString(result.scalar_type()) + ", and its place " +
          c10::toString(place.scalar_type()));
    }
    result = result.to(place.scalar_type());
  }
  if (result.sizes() == place.sizes()) {
    return result;
  }
  if (result.numel() == place.numel()) {
    return result.reshape(place.sizes());
  }
  if (!at::is_expandable_to(result.sizes(), place.sizes())) {
    refuse(
        "the result of " + operation + " has shape " + text_of(result.sizes()) + ", and its place " +
        text_of(place.sizes()));
  }
  return result.expand(place.sizes());
}

} // namespace

@implementation MPSGraph
- (NSArray<MPSGraphTensor*>*)placeholderTensors {
  NSMutableArray* placeholders = [NSMutableArray array];
  for (MPSGraphTensor* tensor : tensors_) {
    if (!tensor->node_->compute) {
      [placeholders addObject:tensor];
    }
  }
  return placeholders;
}
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor {
  const RunGuard guard;
  Values values;
  for (MPSGraphTensor* placeholder in feeds) {
    MPSGraphTensorData* data = [feeds objectForKey:placeholder];
    require_fit(placeholder, data->tensor_);
    values[placeholder->node_.get()] = {data->tensor_};
  }
  MPSGraph* other = other_graph_of(self);
  Values of_other;
  const auto counterpart = [&](MPSGraphTensor* tensor) {
    return other->tensors_[std::find(tensors_.begin(), tensors_.end(), tensor) - tensors_.begin()];
  };
  if (other != nil) {
    require_same_structure(self, other);
    for (MPSGraphTensor* placeholder in feeds) {
      of_other[counterpart(placeholder)->node_.get()] = values[placeholder->node_.get()];
    }
  }
  std::vector<std::pair<Tensor, Tensor>> writes;
  for (MPSGraphTensor* target in resultsDictionary) {
    MPSGraphTensorData* data = [resultsDictionary objectForKey:target];
    results_lost += data->is_gathered_;
    writes.emplace_back(data->tensor_, placed(target, value_of(target, values), data->tensor_));
    if (other != nil) {
      require_same_result(target->node_->operation, value_of(target, values), value_of(counterpart(target), of_other));
    }
  }
  // A result may share memory with what is fed, and what is fed with the place of another result.
  for (auto& [place, result] : writes) {
    result = result.clone();
  }
  for (const auto& [place, result] : writes) {
    place.copy_(result);
  }
}
@end
