"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import SHAPES, integers, rounded_once, values
from ..verification.workload import Workload

_DTYPES = REAL


def _degrees(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    low = 0 if dtype is torch.uint8 else -1
    for shape in SHAPES:
        yield values(shape, dtype, 0.6), integers(shape, low, 9).to(dtype)
    yield values((7, 1), dtype, 0.5), torch.arange(12).to(dtype)
    if dtype.is_floating_point:
        x = torch.tensor([1.0, -1.0, 0.0, math.inf, -math.inf, 0.5, 0.5]).to(dtype)
        yield x, torch.tensor([5, 5, 6, 3, 3, -2.5, 4.75]).to(dtype)
        yield x, torch.full_like(x, math.nan)
        yield x, torch.full_like(x, math.inf)
        # From degree 2 on the CPU gives an uninitialised number for a NaN.
        yield torch.tensor([math.nan, math.nan, 0.5]).to(dtype), torch.tensor([1.0, 0.0, 1.0]).to(dtype)


def _numbers(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """One operand is a number, which is passed to a Python kernel unchanged."""
    yield values((7, 5), dtype, 0.6), 3
    yield 0.25, torch.arange(6).to(dtype)


def _legendre(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return torch.special.legendre_polynomial_p(x, n)  # type: ignore[no-any-return]


def _laguerre(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return torch.special.laguerre_polynomial_l(x, n)  # type: ignore[no-any-return]


CASES = (
    KernelCall(
        "special.legendre_polynomial_p",
        ("aten::special_legendre_polynomial_p",),
        rounded_once(_legendre),
        _degrees,
        _DTYPES,
        elementwise=True,
    ),
    KernelCall(
        "special.laguerre_polynomial_l",
        ("aten::special_laguerre_polynomial_l",),
        rounded_once(_laguerre),
        _degrees,
        _DTYPES,
        elementwise=True,
    ),
    *(
        KernelCall(
            f"special.{name}",
            (f"aten::special_{name}",),
            getattr(torch.special, name),
            _numbers,
            (torch.float32, torch.int64),
            variant="numbers",
        )
        for name in ("legendre_polynomial_p", "laguerre_polynomial_l")
    ),
)


WORKLOAD = Workload(
    "aten::special_legendre_polynomial_p.out",
    torch.special.legendre_polynomial_p,
    lambda n: (torch.rand(n) * 2 - 1, torch.full((n,), 8.0)),
)
