"""Arguments of recurrent layers: lists of parameters, packed sequences, gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .operands import Example, call, dense

INPUT, HIDDEN, BATCH, STEPS = 4, 3, 2, 5


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def layer_parameters(gates: int, layers: int, directions: int) -> list[Tensor]:
    """Weights and biases as torch.nn.RNN hands them over, flat."""
    made = []
    for layer in range(layers):
        width = INPUT if layer == 0 else HIDDEN * directions
        for _ in range(directions):
            shapes = ((gates * HIDDEN, width), (gates * HIDDEN, HIDDEN), (gates * HIDDEN,), (gates * HIDDEN,))
            made += [dense(*shape) - 0.5 for shape in shapes]
    return made


def recurrent(kind: str, *, packed: bool) -> Callable[[int], Example]:
    """Calls of lstm, gru and the plain layers: with padded sequences, or with packed ones."""

    def make(variant: int) -> Example:
        layers, both_ways, batch_first = (1, 2, 1, 2)[variant], variant >= 2, variant % 2 == 1
        directions = 2 if both_ways else 1
        state = dense(layers * directions, BATCH, HIDDEN)
        hidden: Any = [state, dense(*state.shape)] if kind == "lstm" else state
        common = (hidden, layer_parameters(GATES[kind], layers, directions), True, layers, 0.0, False, both_ways)
        if packed:
            return call(dense(STEPS + 2, INPUT), torch.tensor([2, 2, 1, 1, 1]), *common)
        shape = (BATCH, STEPS, INPUT) if batch_first else (STEPS, BATCH, INPUT)
        return call(dense(*shape), *common, batch_first)

    return make


def cell(kind: str) -> Callable[[int], Example]:
    """Calls of one step of a recurrent layer."""

    def make(variant: int) -> Example:
        batch, gates = variant + 1, GATES[kind]
        hidden: Any = [dense(batch, HIDDEN), dense(batch, HIDDEN)] if kind == "lstm" else dense(batch, HIDDEN)
        return call(dense(batch, INPUT), hidden, *layer_parameters(gates, 1, 1))

    return make


def lstm_cell_gradient(variant: int) -> Example:
    """Gradients of hidden and cell state, both kinds of gates, both biases, both cell states."""
    batch = variant + 1
    states, gates = [dense(batch, HIDDEN) for _ in range(4)], [dense(batch, 4 * HIDDEN) for _ in range(2)]
    return call(states[0], states[1], *gates, dense(4 * HIDDEN), dense(4 * HIDDEN), states[2], states[3])


def gru_cell_gradient(variant: int) -> Example:
    """Gradient of the hidden state, both kinds of gates, the hidden state, both biases."""
    batch = variant + 1
    gates = [dense(batch, 3 * HIDDEN) for _ in range(2)]
    return call(dense(batch, HIDDEN), *gates, dense(batch, HIDDEN), dense(3 * HIDDEN), dense(3 * HIDDEN))


def packed_sequence(variant: int) -> Example:
    """Rows of a packed sequence, how many sequences go on at each step, and how to pad."""
    return call(dense(7, 2 + variant), torch.tensor([3, 2, 1, 1]), variant % 2 == 0, 0.5, (0, 4, 6, 5)[variant])
