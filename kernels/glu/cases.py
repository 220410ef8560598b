"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import rounded_once, values
from ..verification.workload import Workload

_aten = torch.ops.aten
_SHAPES = (((6, 5), 0), ((3, 4, 6), -1), ((2, 8, 3), 1), ((0, 4), 1), ((258,), 0), ((6, 32), 1))


def _halved(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    sizes = list(shape)
    sizes[dim] //= 2
    return tuple(sizes)


def _forward(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, dim in _SHAPES:
        yield values(_halved(shape, dim), dtype), values(shape, dtype, 4.0), values(shape, dtype) + 1, dim
    yield values((2,), dtype), torch.tensor([1.0, 2.0, 90.0, -90.0]).to(dtype), values((4,), dtype), 0
    yield values((3, 2), dtype), values((3, 4), dtype), values((1, 4), dtype), 1  # a tangent that broadcasts


def _backward(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, dim in _SHAPES:
        half = _halved(shape, dim)
        x = values(shape, dtype)
        yield x, values(half, dtype), x + 1, values(half, dtype) - 1, x - 2, dim
    x = values((3, 4), dtype)
    yield x[:1], values((3, 2), dtype), x + 1, values((1, 2), dtype), x - 2, 1  # tangents that broadcast


CASES = (
    KernelCall("glu_jvp", ("aten::glu_jvp",), rounded_once(_aten.glu_jvp.default), _forward),
    KernelCall(
        "glu_backward_jvp",
        ("aten::glu_backward_jvp",),
        rounded_once(_aten.glu_backward_jvp.default),
        _backward,
        (*FLOATING, torch.complex64),
    ),
)


def _tangents(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The result of glu, its input, and the input's tangent."""
    x = torch.randn(max(1, elements // 256), 256)
    return torch.nn.functional.glu(x), x, torch.randn(x.shape)


WORKLOAD = Workload("aten::glu_jvp", lambda glu, x, dx: torch.ops.aten.glu_jvp(glu, x, dx, 1), _tangents)
