"""References in float64 and in whole numbers, and which inputs they are asked with: elementwise, and over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from .elements import Element, numbers, wide


@dataclass(frozen=True)
class Unary:
    """An operation of one number: its reference, and the inputs to try."""

    reference: Callable[[torch.Tensor], torch.Tensor]
    low: float = -4
    high: float = 4
    roundings: float = 4


@dataclass(frozen=True)
class Binary:
    """An operation of two numbers, with inputs for floats and (where they differ) for integers."""

    reference: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    first: tuple[float, float] = (-3, 3)
    second: tuple[float, float] = (0.25, 3)
    roundings: float = 4


def half_away(x: torch.Tensor) -> torch.Tensor:
    """Rounds as C does: a half away from zero."""
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


UNARY: dict[str, Unary] = {
    "abs": Unary(torch.abs),
    "arccos": Unary(torch.arccos, -0.95, 0.95),
    "arccosh": Unary(torch.arccosh, 1.1, 6),
    "arcsin": Unary(torch.arcsin, -0.95, 0.95),
    "arcsinh": Unary(torch.arcsinh),
    "arctan": Unary(torch.arctan),
    "arctanh": Unary(torch.arctanh, -0.9, 0.9),
    "bitwiseinvert": Unary(torch.bitwise_not, -40, 40),
    "ceil": Unary(torch.ceil),
    "conjugate": Unary(torch.conj_physical),
    "copy": Unary(torch.clone),
    "cos": Unary(torch.cos),
    "cosh": Unary(torch.cosh, -3, 3),
    "erf": Unary(torch.erf, -3, 3, roundings=8),
    "erfinv": Unary(torch.erfinv, -0.9, 0.9, roundings=16),
    "exp": Unary(torch.exp, -4, 3),
    "expm1": Unary(torch.expm1, -4, 3),
    "floor": Unary(torch.floor),
    "gelu": Unary(lambda x: functional.gelu(x, approximate="tanh"), roundings=16),
    "gelu_erf": Unary(functional.gelu, roundings=16),
    "gelu_quick": Unary(lambda x: x * torch.sigmoid(1.702 * x), roundings=8),
    "log": Unary(torch.log, 0.1, 6),
    "log10": Unary(torch.log10, 0.1, 6),
    "log1p": Unary(torch.log1p, -0.5, 6),
    "log2": Unary(torch.log2, 0.1, 6),
    "logicalnot": Unary(torch.logical_not),
    "neg": Unary(torch.neg),
    "negative": Unary(torch.neg),
    "recip": Unary(torch.reciprocal, 0.25, 4),
    "relu": Unary(torch.relu),
    "round": Unary(torch.round),
    "rsqrt": Unary(torch.rsqrt, 0.25, 6),
    "sigmoid": Unary(torch.sigmoid),
    "sign": Unary(torch.sgn),
    "silu": Unary(functional.silu, roundings=8),
    "sin": Unary(torch.sin),
    "sinh": Unary(torch.sinh, -3, 3),
    "sqr": Unary(torch.square),
    "sqrt": Unary(torch.sqrt, 0.1, 9),
    "square": Unary(torch.square),
    "tan": Unary(torch.tan, -1.2, 1.2, roundings=8),
    "tanh": Unary(torch.tanh),
}


def _truncated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x / y if x.is_floating_point() or x.is_complex() else torch.div(x, y, rounding_mode="trunc")


_POSITIVE = (0.25, 3.0)
BINARY: dict[str, Binary] = {
    "add": Binary(torch.add),
    "arctan2": Binary(torch.atan2),
    "bitwiseand": Binary(torch.bitwise_and, (-40, 40), (0, 60)),
    "bitwiseor": Binary(torch.bitwise_or, (-40, 40), (0, 60)),
    "bitwisexor": Binary(torch.bitwise_xor, (-40, 40), (0, 60)),
    "copysign": Binary(torch.copysign, (-3, 3), (-3, 3)),
    "div": Binary(_truncated),
    "divide": Binary(_truncated),
    "eq": Binary(torch.eq, (-3, 3), (-3, 3)),
    "equal": Binary(torch.eq, (-3, 3), (-3, 3)),
    "fmax": Binary(torch.fmax, (-3, 3), (-3, 3)),
    "fmin": Binary(torch.fmin, (-3, 3), (-3, 3)),
    "ge": Binary(torch.ge, (-3, 3), (-3, 3)),
    "greater": Binary(torch.gt, (-3, 3), (-3, 3)),
    "greaterequal": Binary(torch.ge, (-3, 3), (-3, 3)),
    "gt": Binary(torch.gt, (-3, 3), (-3, 3)),
    "le": Binary(torch.le, (-3, 3), (-3, 3)),
    "leftshift": Binary(torch.bitwise_left_shift, (-40, 40), (0, 5)),
    "less": Binary(torch.lt, (-3, 3), (-3, 3)),
    "lessequal": Binary(torch.le, (-3, 3), (-3, 3)),
    "logaddexp": Binary(torch.logaddexp, (-3, 3), (-3, 3)),
    "logicaland": Binary(torch.logical_and),
    "logicalor": Binary(torch.logical_or),
    "lt": Binary(torch.lt, (-3, 3), (-3, 3)),
    "maximum": Binary(torch.maximum, (-3, 3), (-3, 3)),
    "minimum": Binary(torch.minimum, (-3, 3), (-3, 3)),
    "mul": Binary(torch.mul),
    "multiply": Binary(torch.mul),
    "nanequal": Binary(lambda x, y: torch.eq(x, y) | (x.isnan() & y.isnan()), (-3, 3), (-3, 3)),
    "ne": Binary(torch.ne, (-3, 3), (-3, 3)),
    "notequal": Binary(torch.ne, (-3, 3), (-3, 3)),
    "power": Binary(torch.pow, _POSITIVE, (0, 3)),
    "remainder": Binary(torch.remainder),
    "rightshift": Binary(torch.bitwise_right_shift, (0, 40), (0, 5)),
    "sub": Binary(torch.sub),
    "subtract": Binary(torch.sub),
}


REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x.sum(-1),
    "prod": lambda x: x.prod(-1),
    "mul": lambda x: x.prod(-1),
    "min": lambda x: x.amin(-1),
    "max": lambda x: x.amax(-1),
}
"""Of rows, to one number each."""


def result_of(reference: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """The reference's result on inputs in float64, complex128 or int64; bools stay what they are."""
    return reference(*(one if one.dtype is torch.bool else wide(one) for one in inputs))


def exactly(result: torch.Tensor, of: Element) -> torch.Tensor:
    """Whole numbers as memory of this type holds them, wrapped to its width; floats stay in float64."""
    return result if of.is_float or of.dtype.is_complex else result.to(of.dtype)


def binary_inputs(
    operation: Binary, shape: tuple[int, ...], of: Element, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of numbers that the operation takes; of integers the second has no zero where it may divide."""
    first = numbers(shape, of, *operation.first, seed=seed)
    second = numbers(shape, of, *operation.second, seed=seed + 1)
    return first, second
