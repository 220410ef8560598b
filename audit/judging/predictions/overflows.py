"""Results beyond the numbers of their dtype, where the order of operations decides between infinities and NaN."""

from __future__ import annotations

from torch import Tensor

from .prediction import Prediction


def not_finite(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Neither the device's element is finite nor the CPU's, or the one in float64."""
    return ~values.isfinite() & (~right.isfinite() | ~wide.to(right.dtype).isfinite())


def undefined(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """The device's element is NaN."""
    return values.isnan()


def infinite_or_undefined(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """The device's element is not finite."""
    return ~values.isfinite()


OVERFLOWS = (
    Prediction("not-finite-on-either-side", where=not_finite),
    Prediction("no-number-by-definition", where=undefined),
    Prediction("not-finite-on-the-device", where=infinite_or_undefined),
)
