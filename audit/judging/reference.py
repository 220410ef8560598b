"""The float64 reference of a case, computed only when the device's bits differ from the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves, map_leaves
from .execution import Execution, execute, gradients
from .transfer import widened


class WideRuns:
    """Runs of a case in float64: with its own inputs, and with inputs moved by one ULP.

    Args:
        case: the case, its inputs on the CPU.
        cotangents: those of the backward; the judge fills the list before it compares gradients.
        seed: seeds all generators, to make random operators and moves reproducible.
    """

    def __init__(self, case: Case, cotangents: list[Tensor], seed: Callable[[], None]) -> None:
        self._case = case
        self._cotangents = cotangents
        self._seed = seed
        self._directions = torch.Generator().manual_seed(0)
        self._perturbed: list[Execution | None] = []

    @cached_property
    def exact(self) -> Execution | None:
        """The run with the case's own inputs, or None if the operator does not support float64."""
        return self._run(widened((self._case.args, self._case.kwargs)))

    def perturbed(self, moves: int) -> list[Execution]:
        """Runs with every floating input moved up or down by one ULP, in a different direction each time.

        In a sum with one large product, half of the directions cancel out.
        """
        case = self._case
        while len(self._perturbed) < moves:
            inputs = perturb((case.args, case.kwargs), self._directions, case.rounded_to)
            run = self._run(widened(inputs))
            self._perturbed.append(run and run.without_unchanged_arguments())
        return [run for run in self._perturbed[:moves] if run is not None]

    @cached_property
    def flushed(self) -> Execution | None:
        """The run with zeros in place of subnormal inputs; None if no input is subnormal."""
        inputs = (self._case.args, self._case.kwargs)
        return self._run(widened(map_leaves(flushed, inputs))) if any(map(_is_subnormal, leaves(inputs))) else None

    def gradients(self, execution: Execution) -> list[Tensor | None]:
        """The gradients of one of the runs; empty if the operator has none in float64.

        Cotangents are inputs of the backward: in a run with moved inputs they are moved as well.
        """
        if not execution.gradients:
            cotangents = self._cotangents
            if execution is not self.exact:
                cotangents = perturb(cotangents, torch.Generator().manual_seed(1), self._case.rounded_to)
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


class Position:
    """The reference of one result among several."""

    def __init__(self, runs: WideRuns, position: int) -> None:
        self._runs = runs
        self.position = position

    def value(self) -> Tensor | None:
        """The result in float64, or None if there is none."""
        return None if self._runs.exact is None else self.of(self._runs.exact)

    def sensitivity(self, moves: int) -> Tensor | None:
        """The largest move of each element over the runs with moved inputs."""
        exact = self.value()
        if exact is None:
            return None
        largest: Tensor | None = None
        for moved in map(self.of, self._runs.perturbed(moves)):
            if moved is not None and moved.shape == exact.shape and moved.layout is exact.layout:
                move = (moved - exact).abs().detach()
                dense = move if move.layout is torch.strided else move.to_dense()
                dense = dense.nan_to_num(0.0, 0.0, 0.0)  # a move to where the operator is undefined is ignored
                largest = dense if largest is None else torch.maximum(largest, dense)
        return largest

    def flushed(self) -> Tensor | None:
        """The result for zeros in place of subnormal inputs."""
        return None if self._runs.flushed is None else self.of(self._runs.flushed)

    def of(self, run: Execution) -> Tensor | None:
        """This result of a run, or None if the run has no such result."""
        raise NotImplementedError


class WideOutput(Position):
    """The reference of an output."""

    def of(self, run: Execution) -> Tensor | None:
        """The output of a run."""
        output = run.outputs[self.position] if self.position < len(run.outputs) else None
        return output if isinstance(output, Tensor) else None


class WideArgument(Position):
    """The reference of an argument after the call; its position is that among the tensors of the arguments."""

    def of(self, run: Execution) -> Tensor | None:
        """The argument after a run."""
        return run.tensors[self.position].detach() if self.position < len(run.tensors) else None


class WideGradient(Position):
    """The reference of a gradient."""

    def of(self, run: Execution) -> Tensor | None:
        """The gradient through a run."""
        gradients = self._runs.gradients(run)
        return gradients[self.position] if self.position < len(gradients) else None


def perturb(tree: Any, directions: torch.Generator, rounded_to: torch.dtype | None = None) -> Any:
    """The tree with each element of its floating tensors moved up or down by one ULP of its dtype.

    If the call may round to a narrower dtype, `rounded_to` is that dtype, and its ULP is used. Tensors are moved in
    float64, because their own dtype could not hold the moved values. If the tree has no floating tensor, its floating
    numbers are moved (`linspace`), by a ULP of float32.
    """

    def shifted(values: Tensor, dtype: torch.dtype) -> Tensor:
        signs = torch.randint(0, 2, values.shape, generator=directions) * 2 - 1
        return values * (1 + torch.finfo(rounded_to or dtype).eps * signs)

    def move(leaf: Any) -> Any:
        if isinstance(leaf, float) and not has_tensors:
            return float(shifted(torch.tensor(leaf, dtype=torch.float64), torch.float32))
        if not _is_floating(leaf):
            return leaf
        wide = widened(leaf).detach()
        if leaf.layout is torch.sparse_coo:
            values = shifted(wide._values(), leaf.dtype)
            moved = torch.sparse_coo_tensor(
                wide._indices(), values, wide.shape, is_coalesced=leaf.is_coalesced(), check_invariants=False
            )
        elif leaf.layout is torch.strided:
            moved = shifted(wide, leaf.dtype)
        else:
            return leaf
        return moved.requires_grad_(leaf.requires_grad)

    has_tensors = any(map(_is_floating, leaves(tree)))
    return map_leaves(move, tree)


def flushed(leaf: Any) -> Any:
    """A tensor with zeros of the same sign in place of subnormal numbers; any other leaf unchanged."""
    if not _is_subnormal(leaf):
        return leaf
    tiny = leaf.detach().abs() < torch.finfo(leaf.dtype).smallest_normal
    return torch.where(tiny, leaf.detach() * 0, leaf.detach()).requires_grad_(leaf.requires_grad)


def _is_subnormal(leaf: Any) -> bool:
    if not _is_floating(leaf) or leaf.layout is not torch.strided or leaf.is_complex():
        return False
    size = leaf.detach().abs()
    return bool(((size > 0) & (size < torch.finfo(leaf.dtype).smallest_normal)).any())


def _is_floating(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
