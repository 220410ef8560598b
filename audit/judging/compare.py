"""Compares a result of the device with the CPU's result and, where their bits differ, with a float64 reference.

The tolerance of a dtype is at most `torch.testing.assert_close`'s default (rtol, atol). The relative part always holds.
The absolute part is only for small results of large terms that cancel: the conditioning of an element decides how much
of it the element gets (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 1.5). An element may be
off by the sum of

- `ULPS` ULP of the result: a GPU's exp or tan is that exact, and a multiply-add may be fused;
- `CONDITION` times its change when the inputs move by one ULP: a device may add in another order, or round once more;
- `SLACK` times the CPU's own error against the float64 reference, at elements of its size or smaller: there the
  operator's definition itself cancels;

limited by the absolute tolerance. An element that changes by a quarter of its size or more is what remains of terms
that cancel, even if they cancel in float64 (the gradient of the bias of an attention's keys is zero): it gets the whole
absolute tolerance. So log(1 + x) computed directly is wrong for a small x, where the exact result is known; a small sum
of large terms may have an error of their size.

Beyond the tolerance an element may be off by `SLACK` times its change under moved inputs, and all elements by `SLACK`
times the CPU's own error. An element that equals the CPU's to the bit is right by definition.

GPUs flush subnormal numbers to zero. That is accepted for results, and for inputs if the result is the one for zeros in
their place; `Agreement.note` names it. A caller may also require the signs of zeros that IEEE 754 defines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
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
# Metal's precise functions are within 16 ULP (pow); exp, log, sin within 4.
ULPS = 16.0
# Rounding errors of a result, in units of its change when each input moves by one ULP.
CONDITION = 16.0
# The CPU's error at elements up to 2^3 times as large counts for an element.
NEIGHBOURHOOD = 3

# In how many directions the inputs are moved, until the result is right. Each direction halves the chance that two
# terms of a sum hide their cancellation.
MOVES = (2, 8, 24)
# Every run is stored; those of larger tensors would not fit.
LARGEST_TO_MOVE_AGAIN = 1 << 20

FLUSHED = "numbers too small to be normal are flushed to zero"


class Reference(Protocol):
    """The results of the operator in float64 (or complex128). Each is computed on demand and costs a run."""

    def value(self) -> Tensor | None:
        """The reference, or None if the operator has none."""

    def sensitivity(self, moves: int) -> Tensor | None:
        """The change of each element when every floating input moves by one ULP of its dtype.

        Args:
            moves: the number of directions, a run each. Runs of an earlier call count.
        """

    def flushed(self) -> Tensor | None:
        """The reference with zeros in place of subnormal inputs; None if no input is subnormal."""


class NoReference:
    """For results that have no float64 counterpart."""

    def value(self, *_: object) -> None:
        """There is none."""

    sensitivity = flushed = value


@dataclass(frozen=True)
class Difference:
    """How a tensor differs from the expected one, in one line, and the error in units of the tolerance.

    Attributes:
        wrong: which elements differ, a bool tensor on the CPU; None if something else than values differs.
        of_form: whether it is the shape or the dtype.
    """

    text: str
    max_error: float | None = None
    wrong: Tensor | None = field(default=None, compare=False, repr=False)
    of_form: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Agreement:
    """The tensor is right.

    Attributes:
        max_error: the largest error in units of the tolerance, 0.0 when equal to the CPU's to the bit.
        note: an accepted difference, for people.
    """

    max_error: float
    note: str = ""


def compare(
    actual: Tensor,
    expected: Tensor,
    reference: Reference,
    *,
    device: str = "mps",
    values: bool = True,
    rounded_to: torch.dtype | None = None,
    signed_zeros: bool = False,
) -> Agreement | Difference:
    """Compare a result of the device with the CPU's.

    Args:
        actual: the device's result.
        expected: the CPU's result for the same inputs in the same dtype.
        reference: computes the float64 (or complex128) result on demand.
        device: where `actual` must be.
        values: False compares device, layout, dtype and shape only.
        rounded_to: both sides may have rounded to this dtype anywhere, as under autocast. The dtypes of the results may
            then differ, and the tolerance is this dtype's.
        signed_zeros: require the sign of zeros that the CPU and the reference agree on.
    """
    if actual.device.type != device:
        return Difference(f"device is {actual.device.type}, not {device}")
    if actual.layout is not expected.layout:
        return Difference(f"layout is {actual.layout}, not {expected.layout}")
    if actual.dtype is not expected.dtype and not _both_rounded(actual, expected, rounded_to):
        values_too = _after_cast(actual, expected) if values else ""
        return Difference(f"dtype is {actual.dtype}, not {expected.dtype}{values_too}", of_form=True)
    if actual.shape != expected.shape:
        return Difference(f"shape is {list(actual.shape)}, not {list(expected.shape)}", of_form=True)
    if not values or actual.numel() == 0:
        return Agreement(0.0)
    of_dtype = rounded_to if rounded_to and actual.is_floating_point() else actual.dtype
    actual, expected = on_cpu(actual), on_cpu(expected)
    if actual.dtype is not expected.dtype:
        actual, expected = actual.float(), expected.float()
    agreement = _compare_values(actual, expected, reference, of_dtype)
    if signed_zeros and isinstance(agreement, Agreement) and (actual.is_floating_point() or actual.is_complex()):
        return _compare_zeros(actual, expected, reference) or agreement
    return agreement


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two CPU tensors have the same shape and values; NaN equals NaN, and sparse tensors count as equal."""
    if left.layout is not torch.strided or right.layout is not torch.strided:
        return True
    if torch.complex32 in (left.dtype, right.dtype):
        left, right = (tensor.to(torch.complex64) for tensor in (left, right))  # the CPU cannot compare complex32
    if torch.equal(left, right):
        return True
    if left.shape != right.shape or not (left.is_floating_point() or left.is_complex()):
        return False
    return bool(((left == right) | (left.isnan() & right.isnan())).all())


def _both_rounded(actual: Tensor, expected: Tensor, rounded_to: torch.dtype | None) -> bool:
    return rounded_to is not None and {actual.dtype, expected.dtype} <= {rounded_to, torch.float32}


def on_cpu(tensor: Tensor) -> Tensor:
    """The values of a tensor on the CPU, strided, without lazy bits; those of complex32 in complex64."""
    tensor = tensor.detach()
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    if tensor._is_zerotensor():  # a tangent without memory, which torch compares all the same where it is complex
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    # The CPU compares no complex32; the wider dtype holds every value of it.
    return tensor.to(torch.complex64) if tensor.dtype is torch.complex32 else tensor


def _after_cast(actual: Tensor, expected: Tensor) -> str:
    """How the values differ after a cast of both to float64 or complex128; "" if they do not."""
    if actual.shape != expected.shape or actual.numel() == 0:
        return ""
    wide = torch.complex128 if actual.is_complex() or expected.is_complex() else torch.float64
    own, wanted = on_cpu(actual).to(wide), on_cpu(expected).to(wide)
    limits = [TOLERANCES[tensor.dtype] for tensor in (actual, expected) if tensor.dtype in TOLERANCES]
    relative, absolute = max(limits, default=(0.0, 0.0))
    same = (own == wanted) | (own.isnan() & wanted.isnan())
    near = (own - wanted).abs() <= SLACK * (absolute + relative * wanted.abs())
    wrong = ~(same | near)
    return f"; after a cast {_describe_mismatch(own, wanted, wrong)}" if bool(wrong.any()) else ""


def _compare_values(
    actual: Tensor, expected: Tensor, reference: Reference, of_dtype: torch.dtype
) -> Agreement | Difference:
    if torch.equal(actual, expected):
        return Agreement(0.0)
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    if bool(same.all()):
        return Agreement(0.0)
    wide = reference.value()
    if of_dtype not in TOLERANCES:
        return _compare_exactly(actual, expected, same, wide)
    if wide is None or wide.shape != expected.shape:
        return Elements(actual, expected, expected, same, of_dtype).without_reference()
    elements = Elements(actual, expected, on_cpu(wide), same, of_dtype)
    result = elements.compare_with_float64()
    if isinstance(result, Agreement):
        return result
    for moves in MOVES[:2] if expected.numel() > LARGEST_TO_MOVE_AGAIN else MOVES:
        sensitivity = None if isinstance(result, Agreement) else reference.sensitivity(moves)
        if sensitivity is not None and sensitivity.shape == expected.shape:
            elements.sensitivity = on_cpu(sensitivity).nan_to_num(0.0, 0.0, 0.0)
            result = elements.compare_with_float64()
    flushed = None if isinstance(result, Agreement) else reference.flushed()
    if flushed is not None and flushed.shape == expected.shape:
        elements.flushed = on_cpu(flushed).to(elements.wide.dtype)
        result = elements.compare_with_float64()
    return result


def _compare_zeros(actual: Tensor, expected: Tensor, reference: Reference) -> Difference | None:
    """Compare the signs of zeros where the float64 run agrees with the CPU, of complex numbers those of both parts."""
    mine, cpus = _in_parts(actual), _in_parts(expected)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[mine.element_size()]
    if torch.equal(mine.view(bits), cpus.view(bits)):
        return None
    wrong = (mine == 0) & (cpus == 0) & (mine.signbit() != cpus.signbit())
    value = reference.value() if bool(wrong.any()) else None
    wide = None if value is None else _in_parts(on_cpu(value))
    if wide is None or wide.shape != cpus.shape or not wide.is_floating_point():
        return None
    wrong &= (wide == 0) & (wide.signbit() == cpus.signbit())
    wrong = wrong.any(-1) if expected.is_complex() else wrong
    if not bool(wrong.any()):
        return None
    return Difference("the sign of zero: " + _describe_mismatch(actual, expected, wrong), wrong=wrong)


def _in_parts(tensor: Tensor) -> Tensor:
    """The tensor; of complex numbers the real and imaginary parts, in a last dimension."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _compare_exactly(actual: Tensor, expected: Tensor, same: Tensor, wide: Tensor | None) -> Agreement | Difference:
    """Compare integers and bools: they must equal the CPU's result, or the float64 one if the CPU rounds otherwise."""
    if wide is not None and wide.dtype is actual.dtype and wide.shape == actual.shape:
        same = same | (actual == on_cpu(wide))
    if bool(same.all()):
        return Agreement(0.0)
    return Difference(_describe_mismatch(actual, expected, ~same), wrong=~same)


class Elements:
    """The elements of a floating tensor from the device, the CPU and the float64 run.

    Attributes:
        sensitivity: the change of each element when its inputs move; None until it is computed.
        flushed: the float64 run with zeros in place of subnormal inputs; None until it is computed.
    """

    def __init__(self, actual: Tensor, expected: Tensor, wide: Tensor, same: Tensor, of_dtype: torch.dtype) -> None:
        self.wide = wide.to(torch.complex128 if actual.is_complex() else torch.float64)
        self.sensitivity: Tensor | None = None
        self.flushed: Tensor | None = None
        self._actual = actual
        self._expected = expected
        self._same = same
        self._limits = torch.finfo(of_dtype)
        self._rtol, self._atol = TOLERANCES[of_dtype]
        self._error = (actual.to(self.wide.dtype) - self.wide).abs()
        self._own_error = (expected.to(self.wide.dtype) - self.wide).abs().nan_to_num(0.0, 0.0, 0.0)

    def without_reference(self) -> Agreement | Difference:
        """Compare with the CPU's result only; the conditioning is unknown."""
        return self._judged(self._atol + self._rtol * self.wide.abs())

    def compare_with_float64(self) -> Agreement | Difference:
        """Compare with the float64 run, with the sensitivity and flushed reference computed so far."""
        size, absolute = self._size, self._absolute
        unit, whole = self._rtol * size, self._atol + self._rtol * size
        if self.sensitivity is None:
            return self._judged(unit + absolute.clamp(max=self._atol), self._units_allowed(whole))
        absolute = absolute + CONDITION * self.sensitivity
        undetermined = (self.sensitivity > 0) & (self.sensitivity >= size / SLACK)
        unit += torch.where(undetermined, self._atol, absolute.clamp(max=self._atol))
        moved = SLACK * self.sensitivity
        return self._judged(torch.maximum(unit, moved), self._units_allowed(torch.maximum(whole, moved)))

    @cached_property
    def _size(self) -> Tensor:
        return self.wide.abs()

    @cached_property
    def _absolute(self) -> Tensor:
        """The absolute tolerance of each element."""
        absolute = ULPS * self._limits.eps * self._size.clamp(min=self._limits.smallest_normal)
        return absolute + SLACK * _largest_nearby(self._own_error, self._size)

    def _units_allowed(self, unit: Tensor) -> float:
        """How many units of the tolerance an element may be off, given the CPU's own error."""
        return max(1.0, SLACK * float((self._own_error / unit).nan_to_num(0.0, 0.0, 0.0).max()))

    def _judged(self, unit: Tensor, allowed: float | None = None) -> Agreement | Difference:
        allowed = self._units_allowed(unit) if allowed is None else allowed
        actual, wide = self._actual, self.wide
        # NaN and infinities never pass by closeness, only if they equal the CPU's result or the reference.
        comparable = actual.isfinite() & wide.isfinite()
        error = torch.where(comparable & ~self._same, self._error / unit, torch.zeros_like(self._error))
        right = self._same | (comparable & (error <= allowed)) | _is(actual, wide)
        vanished = ~right & self._flushed_to_zero(unit)
        max_error = float(error[~vanished].max()) / allowed if not bool(vanished.all()) else 0.0
        if bool((right | vanished).all()):
            return Agreement(max_error, FLUSHED if bool(vanished.any()) else "")
        wrong = ~(right | vanished)
        return Difference(_describe_mismatch(actual, self._expected, wrong, wide), max_error, wrong)

    def _flushed_to_zero(self, unit: Tensor) -> Tensor:
        """The elements that are right for a device which flushes subnormal numbers to zero."""
        actual = self._actual
        vanished = (actual == 0) & (self.wide.abs() < self._limits.smallest_normal)
        if self.flushed is None:
            return vanished
        comparable = actual.isfinite() & self.flushed.isfinite()
        close = (actual.to(self.flushed.dtype) - self.flushed).abs() <= unit
        # A copy keeps the bits of a number that a comparison takes for zero.
        tiny = self._limits.smallest_normal
        kept = (actual.abs() < tiny) & (self.flushed.abs() < tiny)
        return vanished | (comparable & (close | kept)) | _is(actual, self.flushed)


def _is(actual: Tensor, wide: Tensor) -> Tensor:
    """Whether each element is the rounded reference, including infinities and NaN."""
    return (actual == wide.to(actual.dtype)) | (actual.isnan() & wide.isnan())


def _largest_nearby(errors: Tensor, size: Tensor) -> Tensor:
    """For each element, the largest error among elements of at most 2^NEIGHBOURHOOD times its size."""
    lowest, highest = -1100, 1100  # the exponents of float64
    exponents = torch.where(size > 0, torch.frexp(size).exponent, lowest).clamp(lowest, highest).long() - lowest
    by_exponent = torch.zeros(highest - lowest + 1, dtype=errors.dtype)
    by_exponent.scatter_reduce_(0, exponents.flatten(), errors.flatten(), "amax")
    up_to = by_exponent.cummax(0).values
    return up_to[(exponents + NEIGHBOURHOOD).clamp(max=highest - lowest)]


def _describe_mismatch(actual: Tensor, expected: Tensor, wrong: Tensor, wide: Tensor | None = None) -> str:
    first = tuple(int(i) for i in wrong.nonzero()[0])
    text = f"{int(wrong.sum())} of {wrong.numel()} elements differ; at {list(first)}: {actual[first].item()}"
    text += f", CPU {expected[first].item()}"
    return text if wide is None else f"{text}, float64 {wide[first].item()}"
