"""The result of a comparison with a reference, and how errors are measured."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch

from ....errors import MpsmithError


@dataclass(frozen=True)
class ReferenceComparison:
    """The largest error of some results compared with a reference.

    Attributes:
        family: the family whose kernels ran.
        what: the function and the arguments, or the property that was checked.
        unit: the unit of the errors.
        ours, cpu: the largest error of our kernel, and of torch's CPU with the same arguments in float32.
        reference: the reference, such as "scipy, float64".
    """

    family: str
    what: str
    unit: str
    ours: float
    cpu: float
    reference: str


def library(name: str) -> Any:
    """Import a module that a reference needs. Raises MpsmithError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise MpsmithError(
            f"{package} is not installed, which our kernels are compared with: pip install {package}"
        ) from error


def largest(actual: torch.Tensor, exact: torch.Tensor, unit: torch.Tensor | float) -> float:
    """The largest distance of finite elements, computed in float64, in units; infinity if only one side is finite."""
    wide, computed = exact.to(torch.complex128 if exact.is_complex() else torch.float64), actual.detach().cpu()
    finite = wide.isfinite()
    if not bool((computed.isfinite() == finite).all()):
        return float("inf")
    distances = (computed.to(wide.dtype) - wide).abs() / unit
    return float(distances[finite].max()) if bool(finite.any()) else 0.0


def spacing(exact: torch.Tensor, least: torch.Tensor | float = 0.0) -> torch.Tensor:
    """The distance between neighbouring float32 numbers near `exact`, or near `least` if that is larger."""
    limits = torch.finfo(torch.float32)
    size = torch.maximum(exact.abs(), torch.as_tensor(least, dtype=torch.float64)).clamp(min=limits.smallest_normal)
    return torch.exp2(size.log2().floor()) * limits.eps
