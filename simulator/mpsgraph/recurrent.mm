// LSTM layers in one or two directions, with explicit gradients. Compiled with ARC.
//
// With two directions, states and outputs have the forward ones first
// in their last dimension, recurrent weights in their first one, input weights and biases in their rows.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"
#include "lstm_direction.h"

using namespace mpsgraph;
using namespace mpsmith::lstm;

namespace {

// The optional operands have a place in the list of inputs, or -1.
struct Operands {
  std::vector<MPSGraphTensor*> tensors;
  int64_t add(MPSGraphTensor* tensor) {
    if (tensor == nil) {
      return -1;
    }
    tensors.push_back(tensor);
    return static_cast<int64_t>(tensors.size()) - 1;
  }
};
Tensor optional(const Tensors& inputs, int64_t place) { return place < 0 ? Tensor() : inputs.at(place); }

Layer direction_of(const Layer& whole, int64_t direction, int64_t directions) {
  Layer layer = whole;
  layer.initial_state = part_of(whole.initial_state, -1, direction, directions);
  layer.initial_cell = part_of(whole.initial_cell, -1, direction, directions);
  if (directions == 2) {
    layer.recurrent_weight = whole.recurrent_weight[direction];
    layer.input_weight = part_of(whole.input_weight, 0, direction, 2);
    layer.bias = part_of(whole.bias, 0, direction, 2);
    layer.source = whole.input_weight.defined() ? whole.source : part_of(whole.source, -1, direction, 2);
  }
  return layer;
}

void require_simulated(MPSGraphLSTMDescriptor* d, MPSGraphTensor* mask, MPSGraphTensor* peephole) {
  const bool usual = d.inputGateActivation == MPSGraphRNNActivationSigmoid &&
      d.forgetGateActivation == MPSGraphRNNActivationSigmoid && d.cellGateActivation == MPSGraphRNNActivationTanh &&
      d.outputGateActivation == MPSGraphRNNActivationSigmoid && d.activation == MPSGraphRNNActivationTanh;
  if (!usual || d.forgetGateLast || mask != nil || peephole != nil) {
    refuse("an LSTM with other activations or gates than torch's, a mask or a peephole is not simulated");
  }
}

// Which inputs the layer's tensors are.
struct LayerPlaces {
  int64_t source, recurrent_weight, input_weight, bias, initial_state, initial_cell;
  Layer layer(const Tensors& inputs) const {
    return {optional(inputs, source), optional(inputs, recurrent_weight), optional(inputs, input_weight),
            optional(inputs, bias),   optional(inputs, initial_state),    optional(inputs, initial_cell)};
  }
};

} // namespace

@implementation MPSGraph (MPSGraphRNNOps)
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name {
  require_simulated(descriptor, nil, nil);
  Operands operands;
  const LayerPlaces places = {operands.add(source), operands.add(recurrentWeight), operands.add(inputWeight),
                              operands.add(bias),   operands.add(initState),       operands.add(initCell)};
  require_one_type("LSTM", operands.tensors);
  const int64_t directions = descriptor.bidirectional ? 2 : 1;
  const bool reverse = descriptor.reverse, cells = descriptor.produceCell, training = descriptor.training;
  return results_of(self, "LSTM", operands.tensors, 1 + cells + training, [=](const Tensors& inputs) {
    std::array<Tensors, 3> parts; // by result, then direction
    for (int64_t direction = 0; direction < directions; ++direction) {
      const Layer layer = direction_of(places.layer(inputs), direction, directions);
      const auto found = forward(layer, direction == 1 || reverse);
      for (size_t k = 0; k < found.size(); ++k) {
        parts[k].push_back(found[k]);
      }
    }
    Tensors results = {at::cat(parts[0], -1)};
    if (cells) {
      results.push_back(at::cat(parts[1], -1));
    }
    if (training) {
      results.push_back(at::cat(parts[2], -1));
    }
    return results;
  });
}
// A gradient for each operand that is not nil, in the order of the layer.
- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutputFwd
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name {
  require_simulated(descriptor, mask, peephole);
  Operands operands;
  const LayerPlaces places = {operands.add(source), operands.add(recurrentWeight), operands.add(inputWeight),
                              operands.add(bias),   operands.add(initState),       operands.add(initCell)};
  const size_t count = operands.tensors.size();
  const int64_t outputs = operands.add(sourceGradient), gates = operands.add(zState);
  const int64_t cells = operands.add(cellOutputFwd), last_state = operands.add(stateGradient);
  const int64_t last_cell = operands.add(cellGradient);
  require_one_type("LSTMGradients", operands.tensors);
  const int64_t directions = descriptor.bidirectional ? 2 : 1;
  const bool reverse = descriptor.reverse;
  return results_of(self, "LSTMGradients", operands.tensors, count, [=](const Tensors& inputs) {
    const auto part = [&](int64_t place, int64_t direction) {
      return part_of(optional(inputs, place), -1, direction, directions);
    };
    std::vector<Gradients> found;
    for (int64_t d = 0; d < directions; ++d) {
      const Layer layer = direction_of(places.layer(inputs), d, directions);
      const Incoming incoming = {
          part(outputs, d), part(gates, d), part(cells, d), part(last_state, d), part(last_cell, d)};
      found.push_back(backward(layer, incoming, d == 1 || reverse));
    }
    Gradients all = found[0];
    if (directions == 2) {
      const Gradients& other = found[1];
      all.source = places.input_weight < 0 ? at::cat({all.source, other.source}, -1) : all.source + other.source;
      all.recurrent_weight = at::stack({all.recurrent_weight, other.recurrent_weight});
      all.input_weight = places.input_weight < 0 ? Tensor() : at::cat({all.input_weight, other.input_weight});
      all.bias = places.bias < 0 ? Tensor() : at::cat({all.bias, other.bias});
      all.initial_state = at::cat({all.initial_state, other.initial_state}, -1);
      all.initial_cell = at::cat({all.initial_cell, other.initial_cell}, -1);
    }
    Tensors results = {all.source, all.recurrent_weight};
    const auto add = [&](int64_t place, const Tensor& gradient) {
      if (place >= 0) {
        results.push_back(gradient.reshape(inputs.at(place).sizes()));
      }
    };
    add(places.input_weight, all.input_weight);
    if (places.bias >= 0) { // as PyTorch's host code says: of two directions, it has two dimensions of size one before
      results.push_back(directions == 2 ? all.bias.reshape({1, 1, -1}) : all.bias);
    }
    add(places.initial_state, all.initial_state);
    add(places.initial_cell, all.initial_cell);
    return results;
  });
}
@end
