"""Whether a result of the device is right, given the CPU's result and, when it matters, a float64 reference.

The tolerance of a dtype is `torch.testing.assert_close`'s default (rtol, atol). Where the CPU itself misses the
float64 reference by more than that, the operator is that ill-conditioned for these inputs, and the device may miss
it by `SLACK` times as much. The same holds for an element that moves further than the tolerance when the inputs move
by one unit in their last place: a device that adds in another order, or rounds once more in between, has done nothing
wrong (backward stability, N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 1.5). An element that
equals the CPU's to the bit is right by definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

# (relative, absolute), the defaults of torch.testing.assert_close
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex32: (1e-3, 1e-5),
}
SLACK = 4.0


class Reference(Protocol):
    """What the operator gives in float64 (or complex128); both are computed when asked for, and cost a run each."""

    def value(self) -> Tensor | None:
        """The reference, or None where the operator has none."""

    def sensitivity(self) -> Tensor | None:
        """How far each element moves when every floating input moves by one unit in the last place of its dtype."""


class NoReference:
    """For results that have no float64 counterpart."""

    def value(self) -> None:
        """There is none."""

    def sensitivity(self) -> None:
        """There is none."""


@dataclass(frozen=True)
class Difference:
    """How a tensor differs from what it should be: one line for a person, and the error in units of tolerance."""

    text: str
    max_error: float | None = None


@dataclass(frozen=True)
class Agreement:
    """The tensor is right; the largest error in units of the tolerance, 0.0 when equal to the CPU's to the bit."""

    max_error: float


def compare(
    actual: Tensor,
    expected: Tensor,
    reference: Reference,
    *,
    device: str = "mps",
    values: bool = True,
    rounded_to: torch.dtype | None = None,
) -> Agreement | Difference:
    """Compare a result of the device with the CPU's.

    Args:
        actual: the device's result.
        expected: the CPU's result for the same inputs in the same dtype.
        reference: gives the float64 (or complex128) result when asked.
        device: where `actual` must be.
        values: False compares device, layout, dtype and shape only.
        rounded_to: both sides may have rounded to this dtype wherever they liked, as under autocast: the dtypes of
            the results may then differ, and the tolerance is this dtype's.
    """
    if actual.device.type != device:
        return Difference(f"device is {actual.device.type}, not {device}")
    if actual.layout is not expected.layout:
        return Difference(f"layout is {actual.layout}, not {expected.layout}")
    if actual.dtype is not expected.dtype and not _both_rounded(actual, expected, rounded_to):
        return Difference(f"dtype is {actual.dtype}, not {expected.dtype}")
    if actual.shape != expected.shape:
        return Difference(f"shape is {list(actual.shape)}, not {list(expected.shape)}")
    if not values or actual.numel() == 0:
        return Agreement(0.0)
    tolerance = TOLERANCES.get(rounded_to if rounded_to and actual.is_floating_point() else actual.dtype)
    actual, expected = _on_cpu(actual), _on_cpu(expected)
    if actual.dtype is not expected.dtype:
        actual, expected = actual.float(), expected.float()
    return _compare_values(actual, expected, reference, tolerance)


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two CPU tensors have the same shape and values, NaN being equal to NaN; sparse ones count as equal."""
    if left.layout is not torch.strided or right.layout is not torch.strided:
        return True
    if torch.equal(left, right):
        return True
    if left.shape != right.shape or not (left.is_floating_point() or left.is_complex()):
        return False
    return bool(((left == right) | (left.isnan() & right.isnan())).all())


def _both_rounded(actual: Tensor, expected: Tensor, rounded_to: torch.dtype | None) -> bool:
    return rounded_to is not None and {actual.dtype, expected.dtype} <= {rounded_to, torch.float32}


def _on_cpu(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    # The CPU compares no complex32; the wider dtype holds every value of it.
    return tensor.to(torch.complex64) if tensor.dtype is torch.complex32 else tensor


def _compare_values(
    actual: Tensor, expected: Tensor, reference: Reference, tolerance: tuple[float, float] | None
) -> Agreement | Difference:
    if torch.equal(actual, expected):
        return Agreement(0.0)
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    if bool(same.all()):
        return Agreement(0.0)
    wide = reference.value()
    if tolerance is None:
        return _compare_exactly(actual, expected, same, wide)
    if wide is None or wide.shape != expected.shape:
        wide = expected
    wide = _on_cpu(wide).to(torch.complex128 if actual.is_complex() else torch.float64)
    strict = _compare_floating(actual, expected, wide, same, tolerance, None)
    if isinstance(strict, Agreement):
        return strict
    sensitivity = reference.sensitivity()
    if sensitivity is None or sensitivity.shape != expected.shape:
        return strict
    return _compare_floating(actual, expected, wide, same, tolerance, _on_cpu(sensitivity))


def _compare_exactly(actual: Tensor, expected: Tensor, same: Tensor, wide: Tensor | None) -> Agreement | Difference:
    """Integers and bools: each is the CPU's, or that of the float64 run, where the CPU's own rounding chose another."""
    if wide is not None and wide.dtype is actual.dtype and wide.shape == actual.shape:
        same = same | (actual == _on_cpu(wide))
    return Agreement(0.0) if bool(same.all()) else Difference(_describe_mismatch(actual, expected, ~same))


def _compare_floating(
    actual: Tensor,
    expected: Tensor,
    wide: Tensor,
    same: Tensor,
    tolerance: tuple[float, float],
    sensitivity: Tensor | None,
) -> Agreement | Difference:
    rtol, atol = tolerance
    unit = atol + rtol * wide.abs()
    if sensitivity is not None:
        unit = torch.maximum(unit, SLACK * sensitivity.nan_to_num(0.0, 0.0, 0.0))
    own_error = ((expected.to(wide.dtype) - wide).abs() / unit).nan_to_num(0.0, 0.0, 0.0)
    allowed = max(1.0, SLACK * float(own_error.max()))
    error = (actual.to(wide.dtype) - wide).abs() / unit
    # NaN and infinities never pass by closeness: only by being what the CPU or the reference says.
    comparable = actual.isfinite() & wide.isfinite()
    right = (
        same | (comparable & (error <= allowed)) | (actual == wide.to(actual.dtype)) | (actual.isnan() & wide.isnan())
    )
    finite_errors = torch.where(comparable & ~same, error, torch.zeros_like(error))
    max_error = float(finite_errors.max()) / allowed
    if bool(right.all()):
        return Agreement(max_error)
    return Difference(_describe_mismatch(actual, expected, ~right, wide), max_error)


def _describe_mismatch(actual: Tensor, expected: Tensor, wrong: Tensor, wide: Tensor | None = None) -> str:
    first = tuple(int(i) for i in wrong.nonzero()[0])
    text = f"{int(wrong.sum())} of {wrong.numel()} elements differ; at {list(first)}: {actual[first].item()}"
    text += f", CPU {expected[first].item()}"
    return text if wide is None else f"{text}, float64 {wide[first].item()}"
