// One direction of one LSTM layer, with explicit gradients, on CPU tensors.
//
// Gates are in the order input, forget, cell, output.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <vector>

namespace mpsmith::lstm {

using at::Tensor;

struct Layer { Tensor source, recurrent_weight, input_weight, bias, initial_state, initial_cell; };

// A part of a dimension, such as that of a direction.
inline Tensor part_of(const Tensor& x, int64_t dim, int64_t part, int64_t parts) {
  return x.defined() ? x.chunk(parts, dim).at(part) : x;
}

// The value before the first step; [batch, hidden].
inline Tensor before_first(const Tensor& initial, const Layer& layer) {
  const Tensor like = layer.source[0];
  const int64_t hidden = layer.recurrent_weight.size(-1);
  return initial.defined() ? initial.reshape({-1, hidden}) : at::zeros({like.size(0), hidden}, like.options());
}

inline int64_t time_of(int64_t step, int64_t steps, bool backwards) { return backwards ? steps - 1 - step : step; }

// Outputs, cells and activated gates of each time.
inline std::array<Tensor, 3> forward(const Layer& layer, bool backwards) {
  const int64_t steps = layer.source.size(0);
  Tensor inputs = layer.input_weight.defined() ? at::matmul(layer.source, layer.input_weight.t()) : layer.source;
  inputs = layer.bias.defined() ? inputs + layer.bias : inputs;
  Tensor state = before_first(layer.initial_state, layer), cell = before_first(layer.initial_cell, layer);
  std::vector<Tensor> states(steps), cells(steps), gates(steps);
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t time = time_of(step, steps, backwards);
    const auto z = (at::matmul(state, layer.recurrent_weight.t()) + inputs[time]).chunk(4, -1);
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
inline Tensor gates_gradient(
    const Tensor& gates,
    const Tensor& cell,
    const Tensor& cell_before,
    const Tensor& state_gradient,
    Tensor& cell_gradient) {
  const auto z = gates.chunk(4, -1);
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

inline Gradients backward(const Layer& layer, const Incoming& incoming, bool backwards) {
  const int64_t steps = layer.source.size(0);
  const Tensor first_state = before_first(layer.initial_state, layer);
  const Tensor first_cell = before_first(layer.initial_cell, layer);
  Tensor state_gradient = before_first(incoming.last_state, layer),
         cell_gradient = before_first(incoming.last_cell, layer);
  Tensor recurrent = at::zeros_like(layer.recurrent_weight);
  std::vector<Tensor> gates(steps);
  for (int64_t step = steps - 1; step >= 0; --step) {
    const int64_t time = time_of(step, steps, backwards), before = time_of(step - 1, steps, backwards);
    const Tensor cell_before = step > 0 ? incoming.cells[before] : first_cell;
    const Tensor state_before =
        step > 0 ? part_of(incoming.gates[before], -1, 3, 4) * incoming.cells[before].tanh() : first_state;
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

} // namespace mpsmith::lstm
