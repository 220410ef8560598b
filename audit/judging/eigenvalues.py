"""Eigenvalues in another order, and their vectors turned: `linalg.eig` promises neither an order nor phases.

torch's documentation says so. What the device gives is put into the CPU's order, each eigenvalue beside the nearest one
of the CPU's that has no partner yet, and vectors get the CPU's phases; then they are compared as any output is. What a
backward multiplies with is put into the device's order the same way: the gradient of the matrix is then the CPU's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .operator_name import operator_name
from .phases import phases

_GENERAL = re.compile(r"_?linalg[._]eig(?P<alone>vals)?(\.\w+)?")


@dataclass(frozen=True)
class Order:
    """Where each eigenvalue of the CPU's stands on the device; (matrices, n)."""

    places: Tensor

    def to_cpus(self, values: Tensor) -> Tensor:
        """What the device has of each eigenvalue, or in columns, in the CPU's order."""
        return self._taken(values, self.places)

    def to_devices(self, values: Tensor) -> Tensor:
        """What the CPU has of each eigenvalue in the device's order."""
        return self._taken(values, self.places.argsort(-1))

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor has a number, or a column, for each eigenvalue."""
        matrices, n = self.places.shape
        return tensor.dim() > 0 and tensor.shape[-1] == n and tensor.numel() in (matrices * n, matrices * n * n)

    def _taken(self, values: Tensor, places: Tensor) -> Tensor:
        matrices, n = places.shape
        columns = values.detach().cpu().resolve_conj().resolve_neg().reshape(matrices, -1, n)
        return columns.gather(-1, places[:, None].expand(columns.shape)).reshape(values.shape)


def in_the_cpus_order(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> Tensor | None:
    """An output of the device as the CPU would have ordered and turned it; None where that is determined.

    Args:
        case: the case.
        position: of the output that differs.
        mine, cpus: the outputs of both devices; vectors stand behind their values.
    """
    kind = _GENERAL.fullmatch(case.entry or operator_name(case))
    actual, expected = mine[position], cpus[position]
    if kind is None or not _alike(actual, expected) or not actual.is_complex():
        return None
    values = None if kind["alone"] else _values_of(position, mine, cpus)
    if values is None:
        order = order_of(actual, expected)
        return None if order is None else order.to_cpus(actual).to(actual.device)
    order = order_of(*values)
    if order is None:
        return None
    vectors, wanted = order.to_cpus(actual), expected.detach().cpu().resolve_conj()
    return (vectors * phases(vectors, wanted, -2)).to(actual.device)


def order_of_outputs(case: Case, mine: Sequence[Any], cpus: Sequence[Any]) -> Order | None:
    """The order of the first eigenvalues that a case returns; None where it returns none, or in the CPU's order."""
    if _GENERAL.fullmatch(case.entry or operator_name(case)) is None or not mine or not _alike(mine[0], cpus[0]):
        return None
    order = order_of(mine[0], cpus[0]) if mine[0].is_complex() else None
    return None if order is None or torch.equal(order.places, order.places.sort(-1).values) else order


def order_of(actual: Tensor, expected: Tensor) -> Order | None:
    """The nearest partners of eigenvalues, the nearest pair first; None for what is no finite (..., n)."""
    if actual.dim() == 0 or not actual.numel():
        return None
    n = actual.shape[-1]
    left, right = (
        each.detach().cpu().resolve_conj().reshape(-1, n).to(torch.complex128) for each in (actual, expected)
    )
    if not bool((left.isfinite() & right.isfinite()).all()):
        return None
    distances = (right[:, :, None] - left[:, None, :]).abs()
    places = torch.zeros(right.shape, dtype=torch.int64)
    matrix = torch.arange(len(right))
    for _ in range(n):
        nearest = distances.reshape(len(right), -1).argmin(-1)
        row, column = nearest // n, nearest % n
        places[matrix, row] = column
        distances[matrix, row] = torch.inf
        distances[matrix, :, column] = torch.inf
    return Order(places)


def _values_of(position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> tuple[Tensor, Tensor] | None:
    """The eigenvalues in front of an output of vectors; None for an output that is none."""
    vectors = cpus[position]
    if position == 0 or vectors.dim() < 2 or vectors.shape[-1] != vectors.shape[-2]:
        return None
    before, before_cpus = mine[position - 1], cpus[position - 1]
    if not _alike(before, before_cpus) or before_cpus.shape != vectors.shape[:-1] or not before_cpus.is_complex():
        return None
    return before, before_cpus


def _alike(actual: Any, expected: Any) -> bool:
    return isinstance(actual, Tensor) and isinstance(expected, Tensor) and actual.shape == expected.shape
