"""Gives eigenvectors and singular vectors the CPU's phases, for calls that are wrapped, too.

A wrapped call (repeated, in inference mode, with out=) does not have the one matrix that `factorizations` checks.
There each vector gets the phase of the CPU's vector, and is compared like any output. The phase differences of the
first left and right singular vectors must cancel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case

_EIGH = re.compile(r"_?linalg[._]eigh(\.\w+)?")
_SVD = re.compile(r"_?linalg[._]svd(\.\w+)?")
# How far the product of the phases of a left and a right vector may be from 1.
_SLACK = 1e-3


def with_cpu_phases(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> Iterator[Tensor]:
    """Yield a device's output with the phase of each column set to the CPU's; for singular vectors also of each row.

    Args:
        case: a case of an entry for `eigh` or `svd`; nothing is yielded for others.
        position: the position of the output that differs.
        mine, cpus: the outputs of both devices.
    """
    actual, expected = mine[position], cpus[position]
    of_svd = _SVD.fullmatch(case.entry) is not None
    if not (of_svd or _EIGH.fullmatch(case.entry)) or not _are_vectors(actual, expected):
        return
    if of_svd and not _phases_cancel(mine, cpus):
        return
    own, wanted = (vectors.detach().cpu().resolve_conj() for vectors in (actual, expected))
    for dim in (-2, -1) if of_svd else (-2,):
        yield (own * phases(own, wanted, dim)).to(actual.device)


def phases(own: Tensor, wanted: Tensor, dim: int) -> Tensor:
    """Return the factors that turn the phase of each vector of `own` along `dim` into that of the vector of `wanted`.

    Both are CPU tensors of one shape. In the result, `dim` has size 1.
    """
    product = (own.conj() * wanted).sum(dim, keepdim=True)
    size = product.abs()
    return torch.where(size > 0, product / size, torch.ones_like(product))


def _phases_cancel(mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether the phase differences of the first left and right singular vectors cancel; True if there are none."""
    if len(cpus) < 3 or not (_are_vectors(mine[0], cpus[0]) and _are_vectors(mine[2], cpus[2])):
        return True
    pairs = ((mine[0], cpus[0], -2), (mine[2], cpus[2], -1))
    left, right = (phases(own.detach().cpu(), wanted.detach(), dim) for own, wanted, dim in pairs)
    left, right = left.squeeze(-2), right.squeeze(-1)
    rank = min(left.shape[-1], right.shape[-1])
    return bool(((left[..., :rank] * right[..., :rank] - 1).abs() <= _SLACK).all())


def _are_vectors(actual: Any, expected: Any) -> bool:
    if not isinstance(actual, Tensor) or not isinstance(expected, Tensor) or actual.shape != expected.shape:
        return False
    return expected.dim() > 1 and (expected.is_floating_point() or expected.is_complex())
