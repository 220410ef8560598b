"""The float64 reference of a case, computed only when the device's bits differ from the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..cases import Case
from ..tree import leaves, map_leaves
from .execution import Execution, execute, gradients
from .transfer import widened

# How many times the inputs are moved by a unit in their last place, each time in other directions: in a sum with one
# large product, half of the directions cancel out.
NUDGES = 8


class WideRuns:
    """Runs of a case in float64: with its own inputs, and with inputs moved by a unit in their last place.

    Args:
        case: the case, its inputs on the CPU.
        cotangents: what the outputs' gradients are multiplied with; filled by the judge before gradients are compared.
        seed: makes random operators, and the moves, repeatable.
    """

    def __init__(self, case: Case, cotangents: list[Tensor], seed: Callable[[], None]) -> None:
        self._case = case
        self._cotangents = cotangents
        self._seed = seed

    @cached_property
    def exact(self) -> Execution | None:
        """The run with the case's own inputs, or None where the operator has no float64."""
        return self._run(widened((self._case.args, self._case.kwargs)))

    @cached_property
    def nudged(self) -> list[Execution]:
        """Runs with every floating input moved by a unit in its last place, up or down."""
        directions = torch.Generator().manual_seed(0)
        case = self._case
        inputs = (nudge((case.args, case.kwargs), directions, case.rounded_to) for _ in range(NUDGES))
        return [run for run in map(self._run, map(widened, inputs)) if run is not None]

    def gradients(self, execution: Execution) -> list[Tensor | None]:
        """The gradients through one of the runs, empty where the operator has none in float64.

        Cotangents are inputs of the backward: in a run with moved inputs they are moved as well.
        """
        if not execution.gradients:
            cotangents = self._cotangents
            if execution is not self.exact:
                cotangents = nudge(cotangents, torch.Generator().manual_seed(1), self._case.rounded_to)
            try:
                execution.gradients = gradients(execution, [widened(c) for c in cotangents])
            except Exception:  # whatever an operator raises in float64, there is then no reference
                return []
        return execution.gradients

    def _run(self, inputs: Any) -> Execution | None:
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # integers then promote to float64 as well
        self._seed()
        try:
            return execute(self._case, inputs)
        except Exception:  # whatever an operator raises in float64, there is then no reference
            return None
        finally:
            torch.set_default_dtype(default)


class _Position:
    """The reference of one result among several."""

    def __init__(self, runs: WideRuns, position: int) -> None:
        self._runs = runs
        self._position = position

    def value(self) -> Tensor | None:
        """The result in float64, or None where there is none."""
        return None if self._runs.exact is None else self._of(self._runs.exact)

    def sensitivity(self) -> Tensor | None:
        """The largest move of each element over the runs with moved inputs."""
        exact = self.value()
        if exact is None:
            return None
        moves = [
            (moved - exact).abs()
            for moved in map(self._of, self._runs.nudged)
            if moved is not None and moved.shape == exact.shape and moved.layout is exact.layout
        ]
        dense = [move.detach() if move.layout is torch.strided else move.detach().to_dense() for move in moves]
        return torch.stack(dense).amax(0) if dense else None

    def _of(self, run: Execution) -> Tensor | None:
        raise NotImplementedError


class WideOutput(_Position):
    """The reference of an output."""

    def _of(self, run: Execution) -> Tensor | None:
        output = run.outputs[self._position] if self._position < len(run.outputs) else None
        return output if isinstance(output, Tensor) else None


class WideArgument(_Position):
    """The reference of what a call left of an argument, by its place among the tensors of the arguments."""

    def _of(self, run: Execution) -> Tensor | None:
        tensors = [leaf for leaf in leaves(run.arguments) if isinstance(leaf, Tensor)]
        return tensors[self._position].detach() if self._position < len(tensors) else None


class WideGradient(_Position):
    """The reference of a gradient."""

    def _of(self, run: Execution) -> Tensor | None:
        gradients = self._runs.gradients(run)
        return gradients[self._position] if self._position < len(gradients) else None


def nudge(tree: Any, directions: torch.Generator, rounded_to: torch.dtype | None = None) -> Any:
    """The tree with each element of its floating tensors moved up or down by a unit in the last place of its dtype.

    Where the call may round to a narrower dtype, `rounded_to` is that dtype, and the unit is its. Tensors are moved in
    float64, which holds what their own dtype could not.
    """

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
            return leaf
        if leaf.layout is not torch.strided:
            return leaf
        wide = widened(leaf).detach()
        signs = torch.randint(0, 2, leaf.shape, generator=directions) * 2 - 1
        moved = wide * (1 + torch.finfo(rounded_to or leaf.dtype).eps * signs)
        return moved.requires_grad_(leaf.requires_grad)

    return map_leaves(move, tree)
