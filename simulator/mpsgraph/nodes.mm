// Makes the nodes of a graph and infers their results. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <exception>
#include <utility>

#include "graph.h"

namespace mpsgraph {

namespace {

// Larger operands are inferred without memory, unless the operation reads its operands.
constexpr int64_t kLargestExample = 1 << 12;

struct Inferred {
  Tensors examples; // none where no attempt succeeded
  std::string problem;
};

Tensors examples_of(const std::vector<MPSGraphTensor*>& operands, at::Device device) {
  Tensors examples;
  for (MPSGraphTensor* operand : operands) {
    if (operand->node_->constants && device.is_cpu()) {
      examples.push_back(operand->node_->constants->at(operand->output_));
      continue;
    }
    Shape shape = operand->shape_.value_or(Shape{1});
    for (int64_t& length : shape) {
      length = length < 0 ? 1 : length;
    }
    examples.push_back(at::zeros(shape, at::dtype(operand->type_).device(device)));
  }
  return examples;
}

bool are_known(const std::vector<MPSGraphTensor*>& operands) {
  for (MPSGraphTensor* operand : operands) {
    if (!operand->shape_ || std::find(operand->shape_->begin(), operand->shape_->end(), -1) != operand->shape_->end()) {
      return false;
    }
  }
  return true;
}

bool are_small(const std::vector<MPSGraphTensor*>& operands) {
  for (MPSGraphTensor* operand : operands) {
    if (operand->shape_ && c10::multiply_integers(*operand->shape_) > kLargestExample) {
      return false;
    }
  }
  return true;
}

bool are_constant(const std::vector<MPSGraphTensor*>& operands) {
  for (MPSGraphTensor* operand : operands) {
    if (!operand->node_->constants) {
      return false;
    }
  }
  return !operands.empty();
}

// Raises what the operation raises, with its name.
Tensors constants_of(const Node& node) {
  Tensors values;
  for (MPSGraphTensor* operand : node.operands) {
    values.push_back(operand->node_->constants->at(operand->output_));
  }
  try {
    return node.compute(values);
  } catch (const std::exception& error) {
    refuse(node.operation + ": " + message_of(error));
  }
}

// Runs the operation on its operands' constants, on zeros, or on tensors without memory.
Inferred inferred(Node& node) {
  const UnrecordedGuard guard;
  if (are_constant(node.operands)) {
    node.constants = constants_of(node);
    return {*node.constants, ""};
  }
  std::vector<at::Device> devices = {at::kCPU, at::kMeta};
  if (!are_small(node.operands)) {
    std::swap(devices[0], devices[1]);
  }
  Inferred found;
  for (const at::Device device : devices) {
    try {
      found.examples = node.compute(examples_of(node.operands, device));
      return found;
    } catch (const std::exception& error) {
      found.problem = device.is_cpu() ? message_of(error) : found.problem;
    }
  }
  return found;
}

MPSGraphTensor* tensor_of(
    MPSGraph* graph, std::shared_ptr<Node> node, size_t output, c10::ScalarType type, std::optional<Shape> shape) {
  MPSGraphTensor* tensor = [MPSGraphTensor new];
  tensor->node_ = std::move(node);
  tensor->output_ = output;
  tensor->type_ = type;
  tensor->shape_ = std::move(shape);
  graph->tensors_.push_back(tensor);
  return tensor;
}

} // namespace

MPSGraphTensor* placeholder(MPSGraph* graph, c10::ScalarType type, std::optional<Shape> shape) {
  return tensor_of(graph, std::make_shared<Node>(Node{"placeholder", {}, {}, {}}), 0, type, std::move(shape));
}

MPSGraphTensor* constant(MPSGraph* graph, const Tensor& value) {
  const auto node =
      std::make_shared<Node>(Node{"constant", {}, [value](const Tensors&) { return Tensors{value}; }, {}});
  node->constants = Tensors{value};
  return tensor_of(graph, node, 0, value.scalar_type(), value.sizes().vec());
}

NSArray<MPSGraphTensor*>* results_of(
    MPSGraph* graph, const char* operation, std::vector<MPSGraphTensor*> operands, size_t count, Compute compute) {
  for (MPSGraphTensor* operand : operands) {
    if (operand == nil) {
      refuse(std::string(operation) + ": an operand is nil");
    }
  }
  is_beyond(operation, "use", 1);
  const auto node = std::make_shared<Node>(Node{operation, std::move(operands), std::move(compute), {}});
  const bool known = are_known(node->operands);
  const Inferred found = inferred(*node);
  if (found.examples.empty() && known) {
    refuse(std::string(operation) + ": " + found.problem);
  }
  NSMutableArray* results = [NSMutableArray arrayWithCapacity:count];
  for (size_t output = 0; output < count; ++output) {
    if (found.examples.empty()) {
      const auto type = node->operands.empty() ? at::kFloat : node->operands[0]->type_;
      [results addObject:tensor_of(graph, node, output, type, std::nullopt)];
      continue;
    }
    const Tensor& example = found.examples.at(output);
    is_beyond(operation, "elements", example.numel());
    const auto shape = known ? std::optional(example.sizes().vec()) : std::nullopt;
    [results addObject:tensor_of(graph, node, output, example.scalar_type(), shape)];
  }
  return results;
}

MPSGraphTensor* result_of(
    MPSGraph* graph,
    const char* operation,
    std::vector<MPSGraphTensor*> operands,
    std::function<Tensor(const Tensors&)> compute) {
  return results_of(graph, operation, std::move(operands), 1, [compute](const Tensors& inputs) {
    return Tensors{compute(inputs)};
  })[0];
}

MPSGraphTensor* shaped_by_values(
    MPSGraph* graph,
    const char* operation,
    c10::ScalarType type,
    std::vector<MPSGraphTensor*> operands,
    const std::vector<MPSGraphTensor*>& deciding,
    std::function<Tensor(const Tensors&)> compute) {
  if (are_constant(deciding)) {
    return result_of(graph, operation, std::move(operands), std::move(compute));
  }
  const auto node = std::make_shared<Node>(
      Node{operation, std::move(operands), [compute](const Tensors& inputs) { return Tensors{compute(inputs)}; }, {}});
  return tensor_of(graph, node, 0, type, std::nullopt);
}

MPSGraphTensor* unary(
    MPSGraph* graph, const char* operation, MPSGraphTensor* x, std::function<Tensor(const Tensor&)> compute) {
  return result_of(graph, operation, {x}, [compute](const Tensors& inputs) { return compute(inputs[0]); });
}

MPSGraphTensor* binary(
    MPSGraph* graph,
    const char* operation,
    MPSGraphTensor* x,
    MPSGraphTensor* y,
    std::function<Tensor(const Tensor&, const Tensor&)> compute) {
  require_one_type(operation, {x, y});
  return result_of(
      graph, operation, {x, y}, [compute](const Tensors& inputs) { return compute(inputs[0], inputs[1]); });
}

void require_one_type(const char* operation, const std::vector<MPSGraphTensor*>& operands) {
  for (MPSGraphTensor* operand : operands) {
    if (operand != nil && operands[0] != nil && operand->type_ != operands[0]->type_) {
      refuse(
          std::string("'") + operation + "' op requires the same element type for all operands and results, not " +
          c10::toString(operands[0]->type_) + " and " + c10::toString(operand->type_));
    }
  }
}

} // namespace mpsgraph
