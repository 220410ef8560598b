// LSTM layers in one or two directions, with explicit gradients. Compiled with ARC.
//
// Gates are in the order input, forget, cell, output. With two directions, states and outputs have the forward ones first
// in their last dimension, recurrent weights in their first one, input weights and biases in their rows.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"

using namespace mpsgraph;

namespace {

struct Layer { Tensor source, recurrent_weight, input_weight, bias, initial_state, initial_cell; };

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

// The part of a direction in the last or first dimension.
Tensor half(const Tensor& x, int64_t dim, size_t direction, size_t directions) {
  return x.defined() ? x.chunk(static_cast<int64_t>(directions), dim).at(direction) : x;
}

Layer direction_of(const Layer& whole, size_t direction, size_t directions) {
  Layer layer = whole;
  layer.initial_state = half(whole.initial_state, -1, direction, directions);
  layer.initial_cell = half(whole.initial_cell, -1, direction, directions);
  if (directions == 2) {
    layer.recurrent_weight = whole.recurrent_weight[static_cast<int64_t>(direction)];
    layer.input_weight = half(whole.input_weight, 0, direction, 2);
    layer.bias = half(whole.bias, 0, direction, 2);
    layer.source = whole.input_weight.defined() ? whole.source : half(whole.source, -1, direction, 2);
  }
  return layer;
}

// The value before the first step; [batch, hidden].
Tensor before_first(const Tensor& initial, const Layer& layer) {
  const Tensor like = layer.source[0];
  const int64_t hidden = layer.recurrent_weight.size(-1);
  return initial.defined() ? initial.reshape({-1, hidden}) : at::zeros({like.size(0), hidden}, like.options());
}

int64_t time_of(int64_t step, int64_t steps, bool backwards) { return backwards ? steps - 1 - step : step; }

// Outputs, cells and activated gates of each time.
std::array<Tensor, 3> forward(const Layer& layer, bool backwards) {
  const int64_t steps = layer.source.size(0);
  Tensor inputs = layer.input_weight.defined() ? at::matmul(layer.source, layer.input_weight.t()) : layer.source;
  inputs = layer.bias.defined() ? inputs + layer.bias : inputs;
  Tensor state = before_first(layer.initial_state, layer), cell = before_first(layer.initial_cell, layer);
  Tensors states(steps), cells(steps), gates(steps);
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t time = time_of(step, steps, backwards);
    const Tensors z = (at::matmul(state, layer.recurrent_weight.t()) + inputs[time]).chunk(4, -1);
    const Tensor in = z[0].sigmoid(), forget = z[1].sigmoid(), fresh = z[2].tanh(), out = z[3].sigmoid();
    cell = forget * cell + in * fresh;
    state = out * cell.tanh();
    states[time] = state;
    cells[time] = cell;
    gates[time] = at::cat({in, forget, fresh, out}, -1);
  }
  return {at::stack(states), at::stack(cells), at::stack(gates)};
}

struct Incoming { Tensor outputs, gates, cells, last_state, last_cell; };
struct Gradients { Tensor source, recurrent_weight, input_weight, bias, initial_state, initial_cell; };

// The gradient of the gates before their activation, [batch, 4 hidden]; `cell_gradient` becomes that of the cell before.
Tensor gates_gradient(
    const Tensor& gates,
    const Tensor& cell,
    const Tensor& cell_before,
    const Tensor& state_gradient,
    Tensor& cell_gradient) {
  const Tensors z = gates.chunk(4, -1);
  const Tensor &in = z[0], &forget = z[1], &fresh = z[2], &out = z[3];
  const Tensor active = cell.tanh();
  cell_gradient = cell_gradient + state_gradient * out * (1 - active * active);
  const Tensor gradient = at::cat(
      {cell_gradient * fresh * in * (1 - in), cell_gradient * cell_before * forget * (1 - forget),
       cell_gradient * in * (1 - fresh * fresh), state_gradient * active * out * (1 - out)},
      -1);
  cell_gradient = cell_gradient * forget;
  return gradient;
}

Gradients backward(const Layer& layer, const Incoming& incoming, bool backwards) {
  const int64_t steps = layer.source.size(0);
  const Tensor first_state = before_first(layer.initial_state, layer);
  const Tensor first_cell = before_first(layer.initial_cell, layer);
  Tensor state_gradient = before_first(incoming.last_state, layer),
         cell_gradient = before_first(incoming.last_cell, layer);
  Tensor recurrent = at::zeros_like(layer.recurrent_weight);
  Tensors gates(steps);
  for (int64_t step = steps - 1; step >= 0; --step) {
    const int64_t time = time_of(step, steps, backwards), before = time_of(step - 1, steps, backwards);
    const Tensor cell_before = step > 0 ? incoming.cells[before] : first_cell;
    const Tensor state_before =
        step > 0 ? half(incoming.gates[before], -1, 3, 4) * incoming.cells[before].tanh() : first_state;
    state_gradient = state_gradient + incoming.outputs[time];
    gates[time] =
        gates_gradient(incoming.gates[time], incoming.cells[time], cell_before, state_gradient, cell_gradient);
    recurrent = recurrent + at::matmul(gates[time].t(), state_before);
    state_gradient = at::matmul(gates[time], layer.recurrent_weight);
  }
  const Tensor inputs = at::stack(gates);
  Gradients found = {inputs, recurrent, {}, {}, state_gradient, cell_gradient};
  if (layer.input_weight.defined()) {
    found.source = at::matmul(inputs, layer.input_weight);
    found.input_weight = at::matmul(inputs.flatten(0, 1).t(), layer.source.flatten(0, 1));
  }
  found.bias = layer.bias.defined() ? inputs.sum(at::IntArrayRef{0, 1}) : Tensor();
  return found;
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
  const size_t directions = descriptor.bidirectional ? 2 : 1;
  const bool reverse = descriptor.reverse, cells = descriptor.produceCell, training = descriptor.training;
  return results_of(self, "LSTM", operands.tensors, 1 + cells + training, [=](const Tensors& inputs) {
    std::array<Tensors, 3> parts; // by result, then direction
    for (size_t direction = 0; direction < directions; ++direction) {
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
  const size_t directions = descriptor.bidirectional ? 2 : 1;
  const bool reverse = descriptor.reverse;
  return results_of(self, "LSTMGradients", operands.tensors, count, [=](const Tensors& inputs) {
    const auto part = [&](int64_t place, size_t direction) {
      return half(optional(inputs, place), -1, direction, directions);
    };
    std::vector<Gradients> found;
    for (size_t d = 0; d < directions; ++d) {
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
    add(places.bias, all.bias);
    add(places.initial_state, all.initial_state);
    add(places.initial_cell, all.initial_cell);
    return results;
  });
}
@end
