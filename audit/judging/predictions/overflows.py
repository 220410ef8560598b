"""Results beyond the range of their dtype, where the order of operations decides between infinity and NaN."""

from __future__ import annotations

from torch import Tensor

from .prediction import Prediction


def not_finite(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Which elements are non-finite on the device, and also on the CPU or in float64."""
    return ~values.isfinite() & (~right.isfinite() | ~wide.to(right.dtype).isfinite())


def undefined(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Which elements are NaN on the device."""
    return values.isnan()


def infinite_or_undefined(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Which elements are not finite on the device."""
    return ~values.isfinite()


def not_finite_on_one_side(values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Which elements are not finite on the device or on the CPU."""
    return ~values.isfinite() | ~right.isfinite()


OVERFLOWS = (
    Prediction("not-finite-on-either-side", where=not_finite),
    Prediction("no-number-by-definition", where=undefined),
    Prediction("not-finite-on-the-device", where=infinite_or_undefined),
    Prediction(
        "not-finite-on-one-side",
        where=not_finite_on_one_side,
        with_calls=frozenset({"aten::native_group_norm_backward"}),
    ),
)
