"""Reorders eigenvalues and rephases eigenvectors: `linalg.eig` promises neither an order nor phases.

Each eigenvalue of the device is paired with the nearest one of the CPU that has no partner yet, vectors get the CPU's
phases, and then they are compared like any output. Cotangents are put into the device's order in the same way, so that
the gradient of the matrix is the CPU's.
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
class EigenvalueOrder:
    """The device's index of each eigenvalue of the CPU; (matrices, n)."""

    positions: Tensor

    def to_cpu_order(self, values: Tensor) -> Tensor:
        """Values, or columns, of the device in the CPU's order."""
        return self._taken(values, self.positions)

    def to_device_order(self, values: Tensor) -> Tensor:
        """Values, or columns, of the CPU in the device's order."""
        return self._taken(values, self.positions.argsort(-1))

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor has one number, or one column, for each eigenvalue."""
        matrices, n = self.positions.shape
        return tensor.dim() > 0 and tensor.shape[-1] == n and tensor.numel() in (matrices * n, matrices * n * n)

    def _taken(self, values: Tensor, positions: Tensor) -> Tensor:
        matrices, n = positions.shape
        columns = values.detach().cpu().resolve_conj().resolve_neg().reshape(matrices, -1, n)
        return columns.gather(-1, positions[:, None].expand(columns.shape)).reshape(values.shape)


def in_cpu_order(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> Tensor | None:
    """An output of the device in the CPU's order and phases; None if the operator promises both.

    Args:
        case: the case.
        position: of the output that differs.
        mine, cpus: the outputs of both devices; vectors follow their values.
    """
    kind = _GENERAL.fullmatch(case.entry or operator_name(case))
    actual, expected = mine[position], cpus[position]
    if kind is None or not _same_shape(actual, expected) or not actual.is_complex():
        return None
    values = None if kind["alone"] else _values_of(position, mine, cpus)
    if values is None:
        order = order_of(actual, expected)
        return None if order is None else order.to_cpu_order(actual).to(actual.device)
    order = order_of(*values)
    if order is None:
        return None
    vectors, wanted = order.to_cpu_order(actual), expected.detach().cpu().resolve_conj()
    return (vectors * phases(vectors, wanted, -2)).to(actual.device)


def order_of_outputs(case: Case, mine: Sequence[Any], cpus: Sequence[Any]) -> EigenvalueOrder | None:
    """The order of the first eigenvalues that a case returns; None if it is the CPU's, or there are none."""
    if _GENERAL.fullmatch(case.entry or operator_name(case)) is None or not mine or not _same_shape(mine[0], cpus[0]):
        return None
    order = order_of(mine[0], cpus[0]) if mine[0].is_complex() else None
    return None if order is None or torch.equal(order.positions, order.positions.sort(-1).values) else order


def order_of(actual: Tensor, expected: Tensor) -> EigenvalueOrder | None:
    """Pair eigenvalues, the nearest pair first; None unless both are finite and of shape (..., n)."""
    if actual.dim() == 0 or not actual.numel():
        return None
    n = actual.shape[-1]
    left, right = (
        eigenvalues.detach().cpu().resolve_conj().reshape(-1, n).to(torch.complex128)
        for eigenvalues in (actual, expected)
    )
    if not bool((left.isfinite() & right.isfinite()).all()):
        return None
    distances = (right[:, :, None] - left[:, None, :]).abs()
    positions = torch.zeros(right.shape, dtype=torch.int64)
    matrix = torch.arange(len(right))
    for _ in range(n):
        nearest = distances.reshape(len(right), -1).argmin(-1)
        row, column = nearest // n, nearest % n
        positions[matrix, row] = column
        distances[matrix, row] = torch.inf
        distances[matrix, :, column] = torch.inf
    return EigenvalueOrder(positions)


def _values_of(position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> tuple[Tensor, Tensor] | None:
    """The eigenvalues that precede an output of eigenvectors; None if the output is not one."""
    vectors = cpus[position]
    if position == 0 or vectors.dim() < 2 or vectors.shape[-1] != vectors.shape[-2]:
        return None
    before, before_cpus = mine[position - 1], cpus[position - 1]
    if not _same_shape(before, before_cpus) or before_cpus.shape != vectors.shape[:-1] or not before_cpus.is_complex():
        return None
    return before, before_cpus


def _same_shape(actual: Any, expected: Any) -> bool:
    return isinstance(actual, Tensor) and isinstance(expected, Tensor) and actual.shape == expected.shape
