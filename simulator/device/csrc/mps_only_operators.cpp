// CPU kernels for operators that only mps (and perhaps cuda) implements.
#include "lstm_direction.h"
#include "registration.h"

#include <ATen/core/stack.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>

namespace mpsmith {
namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::SymInt;
using c10::SymIntArrayRef;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

ThreeTensors linear_backward(
    const Tensor& input, const Tensor& grad, const Tensor& weight, std::array<bool, 3> wanted) {
  const Tensor grad_rows = grad.reshape({-1, grad.size(-1)});
  Tensor grad_input, grad_weight, grad_bias;
  if (wanted[0]) {
    grad_input = at::matmul(grad, weight.conj());
  }
  if (wanted[1]) {
    grad_weight = at::mm(grad_rows.t(), input.reshape({-1, input.size(-1)}).conj());
  }
  if (wanted[2]) {
    grad_bias = grad_rows.sum(0);
  }
  return {grad_input, grad_weight, grad_bias};
}

Tensor max_pool2d_backward(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode) {
  const Tensor indices = std::get<1>(at::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode));
  return at::max_pool2d_with_indices_backward(grad, input, kernel, stride, padding, dilation, ceil_mode, indices);
}

Tensor mps_convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    SymIntArrayRef padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups) {
  const std::vector<SymInt> no_output_padding(padding.size(), 0);
  return at::convolution_symint(
      input, weight, bias, stride, padding, dilation, /*transposed=*/false, no_output_padding, std::move(groups));
}

ThreeTensors mps_convolution_backward(
    const Tensor& input,
    const Tensor& grad,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups,
    std::array<bool, 3> wanted) {
  const std::vector<SymInt> no_output_padding(padding.size(), 0);
  const std::vector<SymInt> bias_sizes{weight.sym_size(0)};
  return at::convolution_backward_symint(
      grad, input, weight, bias_sizes, stride, padding, dilation, /*transposed=*/false, no_output_padding,
      std::move(groups), wanted);
}

Tensor mps_convolution_transpose(
    const Tensor& input,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef output_padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups) {
  return at::convolution_symint(
      input, weight, {}, stride, padding, dilation, /*transposed=*/true, output_padding, std::move(groups));
}

TwoTensors mps_convolution_transpose_backward(
    const Tensor& input,
    const Tensor& grad,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef output_padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups,
    std::array<bool, 2> wanted) {
  auto [grad_input, grad_weight, none] = at::convolution_backward_symint(
      grad, input, weight, {}, stride, padding, dilation, /*transposed=*/true, output_padding, std::move(groups),
      {wanted[0], wanted[1], false});
  return {grad_input, grad_weight};
}

// The weights, and the part of the initial states, of one direction of a layer; directions count through all layers.
lstm::Layer lstm_direction(
    const Tensor& source, at::TensorList hx, at::TensorList params, bool has_biases, int64_t direction) {
  const int64_t first = direction * (has_biases ? 4 : 2);
  const Tensor bias = has_biases ? params[first + 2] + params[first + 3] : Tensor();
  return {source, params[first + 1], params[first], bias, hx[0][direction], hx[1][direction]};
}

// Output, last states, last cells; and for the gradients, of each layer: activated gates, cells, outputs after dropout.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> lstm_mps(
    const Tensor& input,
    at::TensorList hx,
    at::TensorList params,
    bool has_biases,
    int64_t layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  TORCH_CHECK(
      hx[0].size(2) == hx[1].size(2), "LSTM with projections is not currently supported with MPS."); // as on a Mac
  const int64_t directions = bidirectional ? 2 : 1;
  Tensor source = batch_first ? input.transpose(0, 1) : input;
  std::vector<Tensor> last_states, last_cells, gates, cells, outputs;
  for (int64_t layer = 0; layer < layers; layer++) {
    std::array<std::vector<Tensor>, 3> parts;
    for (int64_t direction = 0; direction < directions; direction++) {
      const auto found =
          lstm::forward(lstm_direction(source, hx, params, has_biases, layer * directions + direction), direction == 1);
      last_states.push_back(found[0][direction == 1 ? 0 : -1]);
      last_cells.push_back(found[1][direction == 1 ? 0 : -1]);
      for (size_t i = 0; i < parts.size(); i++) {
        parts[i].push_back(found[i]);
      }
    }
    source = at::cat(parts[0], -1);
    if (layer + 1 < layers) {
      source = at::dropout(source, dropout, train);
    }
    cells.push_back(at::cat(parts[1], -1));
    gates.push_back(at::cat(parts[2], -1));
    outputs.push_back(source);
  }
  const Tensor output = (batch_first ? source.transpose(0, 1) : source).contiguous();
  return {output,           at::stack(last_states), at::stack(last_cells),
          at::stack(gates), at::stack(cells),       at::stack(outputs)};
}

std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>> lstm_mps_backward(
    const std::optional<Tensor>& grad_output,
    const std::optional<Tensor>& grad_states,
    const std::optional<Tensor>& grad_cells,
    const Tensor& gates,
    const Tensor& cells,
    const Tensor& input,
    const Tensor& outputs,
    at::TensorList hx,
    at::TensorList params,
    bool has_biases,
    int64_t layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  const int64_t directions = bidirectional ? 2 : 1;
  const auto part_of_last = [](const std::optional<Tensor>& gradient, int64_t direction) {
    return gradient && gradient->defined() ? (*gradient)[direction] : Tensor();
  };
  Tensor gradient = grad_output && grad_output->defined() ? (batch_first ? grad_output->transpose(0, 1) : *grad_output)
                                                          : at::zeros_like(outputs[-1]);
  std::vector<Tensor> grad_first_states(layers * directions), grad_first_cells(layers * directions), grad_params;
  for (int64_t layer = layers - 1; layer >= 0; layer--) {
    const Tensor source = layer > 0 ? outputs[layer - 1] : batch_first ? input.transpose(0, 1) : input;
    Tensor grad_source = at::zeros_like(source);
    std::vector<Tensor> of_layer;
    for (int64_t direction = 0; direction < directions; direction++) {
      const int64_t place = layer * directions + direction;
      lstm::Layer part = lstm_direction(source, hx, params, has_biases, place);
      for (Tensor* factor :
           {&part.source, &part.recurrent_weight, &part.input_weight, &part.initial_state, &part.initial_cell}) {
        *factor = factor->conj(); // of complex numbers
      }
      const auto half = [&](const Tensor& both) { return lstm::part_of(both, -1, direction, directions); };
      const auto found = lstm::backward(
          part,
          {half(gradient), half(gates[layer].conj()), half(cells[layer].conj()), part_of_last(grad_states, place),
           part_of_last(grad_cells, place)},
          direction == 1);
      grad_source += found.source;
      grad_first_states[place] = found.initial_state;
      grad_first_cells[place] = found.initial_cell;
      of_layer.insert(of_layer.end(), {found.input_weight, found.recurrent_weight});
      if (has_biases) {
        of_layer.insert(of_layer.end(), {found.bias, found.bias.clone()});
      }
    }
    grad_params.insert(grad_params.begin(), of_layer.begin(), of_layer.end());
    gradient = grad_source;
    if (layer > 0 && train && dropout > 0) {
      gradient = (gradient / (1 - dropout)).masked_fill(source == 0, 0);
    }
  }
  const Tensor grad_input = (batch_first ? gradient.transpose(0, 1) : gradient).contiguous();
  return {grad_input, {at::stack(grad_first_states), at::stack(grad_first_cells)}, grad_params};
}

// Boxed, because enable_gqa was added to the operator later.
void attention_math_for_mps(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const auto math =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_scaled_dot_product_attention_math", "");
  for (size_t missing = op.schema().arguments().size(); missing < math.schema().arguments().size(); missing++) {
    stack->emplace_back(false);
  }
  math.callBoxed(stack);
}

} // namespace

void register_mps_only_operators(torch::Library& cpu) {
  cpu.impl("linear_backward", TORCH_FN(linear_backward));
  cpu.impl("max_pool2d_backward", TORCH_FN(max_pool2d_backward));
  cpu.impl("_mps_convolution", TORCH_FN(mps_convolution));
  cpu.impl("mps_convolution_backward", TORCH_FN(mps_convolution_backward));
  cpu.impl("_mps_convolution_transpose", TORCH_FN(mps_convolution_transpose));
  cpu.impl("mps_convolution_transpose_backward", TORCH_FN(mps_convolution_transpose_backward));
  cpu.impl("_lstm_mps", TORCH_FN(lstm_mps));
  cpu.impl("lstm_mps_backward", TORCH_FN(lstm_mps_backward));
  cpu.impl(
      "_scaled_dot_product_attention_math_for_mps",
      torch::CppFunction::makeFromBoxedFunction<&attention_math_for_mps>());
}

} // namespace mpsmith
