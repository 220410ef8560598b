"""Compares special functions with scipy in float64 at the same float32 arguments, over their domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .measured import ReferenceComparison, largest, library, spacing

_POINTS = 20_001
_DEGREES = range(0, 31)


@dataclass(frozen=True)
class _Function:
    family: str
    what: str
    call: Callable[[torch.Tensor], torch.Tensor]
    exact: Callable[[Any], Any]
    points: torch.Tensor
    # Near its zeros a function is known to the size that it has around them.
    envelope: Callable[[torch.Tensor], torch.Tensor] = torch.zeros_like


def special_functions() -> Iterator[ReferenceComparison]:
    """The largest errors in units in the last place. Raises MpsmithError if scipy is not installed."""
    scipy = library("scipy.special")
    for function in (*_functions(scipy), *_polynomials(scipy)):
        x = function.points.to(torch.float32)
        exact = torch.from_numpy(function.exact(x.double().numpy()))
        unit = spacing(exact, function.envelope(x.double()))
        ours, cpu = (largest(function.call(x.to(device)), exact, unit) for device in ("mps", "cpu"))
        unit_name = "ulp" if function.envelope is torch.zeros_like else "ulp of the envelope"
        yield ReferenceComparison(function.family, function.what, unit_name, ours, cpu, "scipy, float64")


def _functions(scipy: Any) -> Iterator[_Function]:
    tails = torch.logspace(-37, math.log10(0.5), _POINTS, dtype=torch.float64)
    special = torch.special
    yield _Function("normal_distribution", "ndtri, p from 1e-37 to 1/2", special.ndtri, scipy.ndtri, tails)
    high = 1.0 - torch.logspace(-7, math.log10(0.5), _POINTS, dtype=torch.float64)
    yield _Function("normal_distribution", "ndtri, p from 1/2 to 1 - 1e-7", special.ndtri, scipy.ndtri, high)
    for low, top in ((-1e4, -20.0), (-20.0, 0.0), (0.0, 1.0), (1.0, 12.0)):
        what = f"log_ndtr, x from {low:g} to {top:g}"
        yield _Function("normal_distribution", what, special.log_ndtr, scipy.log_ndtr, _between(low, top))
    for low, top in ((0.0, 5.0), (5.0, 25.0)):
        what = f"airy_ai, x from {low:g} to {top:g}"
        yield _Function("airy", what, special.airy_ai, lambda x: scipy.airy(x)[0], _between(low, top))
    wave = _between(-25.0, 0.0)
    yield _Function("airy", "airy_ai, x from -25 to 0", special.airy_ai, lambda x: scipy.airy(x)[0], wave, _airy_size)
    yield _Function("logit", "logit, p from 1e-37 to 1/2", special.logit, scipy.logit, tails)
    yield _Function("logit", "logit, p from 1/2 to 1 - 1e-7", special.logit, scipy.logit, high, _near_half)


def _polynomials(scipy: Any) -> Iterator[_Function]:
    for name, low, top, evaluate in (
        ("legendre_polynomial_p", -1.0, 1.0, scipy.eval_legendre),
        ("laguerre_polynomial_l", 0.0, 4.0, scipy.eval_laguerre),
    ):
        degrees = torch.tensor(list(_DEGREES)).repeat_interleave(501)
        points = _between(low, top, 501).repeat(len(_DEGREES))
        function = getattr(torch.special, name)

        def call(x: torch.Tensor, function: Any = function, n: torch.Tensor = degrees) -> torch.Tensor:
            return function(x, n.to(x.device, torch.float32))  # type: ignore[no-any-return]

        def exact(x: Any, evaluate: Any = evaluate, n: torch.Tensor = degrees) -> Any:
            return evaluate(n.numpy(), x)

        what = f"{name}, degrees 0 to {_DEGREES[-1]}, x from {low:g} to {top:g}"
        yield _Function("orthogonal_polynomials", what, call, exact, points, torch.ones_like)


def _between(low: float, top: float, points: int = _POINTS) -> torch.Tensor:
    return torch.linspace(low, top, points, dtype=torch.float64)


def _airy_size(x: torch.Tensor) -> torch.Tensor:
    """The amplitude of Ai's oscillation for negative arguments (DLMF 9.7.9)."""
    return (x.abs().clamp(min=1.0) ** -0.25) / math.sqrt(math.pi)


def _near_half(p: torch.Tensor) -> torch.Tensor:
    """The errors' unit is the spacing at 1: near p = 1/2 the odds are near 1, and rounding them has such an error."""
    return torch.ones_like(p)
