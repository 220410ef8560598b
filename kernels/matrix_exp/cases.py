"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import REAL, KernelCall
from ..verification.inputs import rounded_once, values
from ..verification.workload import Workload

_aten = torch.ops.aten
_MATRICES = (torch.float32, torch.complex64)


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((3, 3), (2, 3, 5, 5), (1, 1), (0, 0), (2, 0, 3, 3), (4, 2, 2)):
        yield (values(shape, dtype, 1.0),)
    scales = torch.tensor([1e-6, 0.1, 1.0, 3.0, 20.0])[:, None, None].to(dtype)
    skew = values((5, 4, 4), dtype, 1.0)
    yield ((skew - skew.mT) * scales,)  # orthogonal results, however large the norm is
    yield (-torch.eye(3, dtype=dtype) * 30,)


def _large(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices that fill the memory of a threadgroup, and larger ones."""
    for n in (32, 33, 70):
        yield (values((n, n), dtype, 0.3),)
    yield (torch.stack([values((34, 34), dtype, 0.02), values((34, 34), dtype, 0.6)]),)


def _extremes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield (torch.tensor([[[0, 1e20], [0, 0]], [[-1e15, 0], [0, 1]], [[0, 0], [0, 0]]], dtype=dtype)[:1],)
    yield (torch.tensor([[-1e15, 0], [0, 1]], dtype=dtype)[:, :],)
    yield (torch.full((2, 2), torch.nan, dtype=dtype),)


def _combinations(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, shape in ((4, (3, 2, 2)), (1, (2, 5)), (5, (1, 3, 7)), (2, (4,))):
        yield values(shape, dtype), values((rows, shape[0]), dtype)


def _combined(x: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """The combinations; on the CPU with other operators, because its own kernel misreads complex coefficients."""
    if x.device.type == "cpu":
        return _sum_of_products(x, coefficients)
    return _aten._compute_linear_combination(x, coefficients)  # type: ignore[no-any-return]


def _added(x: torch.Tensor, coefficients: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The combinations, added to an output."""
    if x.device.type == "cpu":
        return (_sum_of_products(x, coefficients) + out).to(x.dtype)
    before = out.clone()
    result = _aten._compute_linear_combination.out(x, coefficients, out=out).clone()
    out.copy_(before)  # arguments are compared after a call
    return result  # type: ignore[no-any-return]


def _sum_of_products(x: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    rows = coefficients.reshape(*coefficients.shape, *[1] * (x.dim() - 1))
    return (rows * x).sum(1).to(x.dtype)


def _combinations_added(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for x, coefficients in _combinations(dtype):
        yield x, coefficients, values((coefficients.shape[0], *x.shape[1:]), dtype)


_EXP, _COMBINATION = ("aten::linalg_matrix_exp",), ("aten::_compute_linear_combination",)
_EVERY = (*REAL, torch.complex64)

CASES = (
    KernelCall("linalg.matrix_exp", _EXP, torch.linalg.matrix_exp, _matrices, _MATRICES, gradients=(0,)),
    KernelCall("linalg.matrix_exp", _EXP, torch.linalg.matrix_exp, _large, _MATRICES, variant="large"),
    KernelCall("linalg.matrix_exp", _EXP, torch.linalg.matrix_exp, _extremes, (torch.float32,), variant="extremes"),
    KernelCall(
        "linalg.matrix_exp",
        _EXP,
        rounded_once(torch.linalg.matrix_exp),
        _matrices,
        (torch.float16, torch.bfloat16),
        variant="halves",
    ),
    KernelCall("_compute_linear_combination", _COMBINATION, _combined, _combinations, _EVERY),
    KernelCall(
        "_compute_linear_combination", _COMBINATION, _added, _combinations_added, _EVERY, variant="out", expands=False
    ),
)


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result, or "": the CPU misreads coefficients of a wrong shape."""
    if len(case.args) < 2:
        return ""
    x, coefficients = case.args[:2]
    if coefficients.dim() != 2 or coefficients.shape[1] != x.shape[0]:
        return "the CPU computes with other coefficients than one for each of the inputs"
    if coefficients.dtype != x.dtype:
        return "the CPU reads the bits of coefficients of another dtype"
    return "the CPU leaves complex terms out" if x.is_complex() else ""


def _matrix(elements: int) -> tuple[torch.Tensor]:
    """A matrix of norm about 4, which is squared once or twice."""
    side = max(2, math.isqrt(elements))
    return (torch.randn(side, side) * 4 / side,)


WORKLOAD = Workload("aten::linalg_matrix_exp", torch.linalg.matrix_exp, _matrix)
