"""Faults that the simulated device commits on purpose: what an auditor has to find is put in for it.

A fault sits in the native kernel of one overload. While none is armed, a call costs one look at a flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from ...near_names import near
from ..errors import SimulatorError
from . import kernel_plan
from . import loading as device

if TYPE_CHECKING:
    import torch

Member = TypeVar("Member", bound=Enum)


class FaultKind(str, Enum):
    """What a faulty operator does. The values are what the C++ side goes by."""

    VALUES = "values"  # every element of the first result is wrong
    NAN = "nan"  # one element is NaN where it is finite
    NEAR = "near"  # one element is off by `relative` of it plus `absolute`
    SHAPE = "shape"  # the first result has one dimension more
    DTYPE = "dtype"  # the first result is of another dtype
    STRIDE = "stride"  # the first result has the right values at other strides
    ALIAS = "alias"  # a view is a copy; any other result lies in an input's memory
    OUTSIDE = "outside"  # writes the byte behind a result, where its storage goes on
    INPUT = "input"  # writes the first element of an input that is no result
    FREED = "freed"  # a result's memory is overwritten at the next call, as if it had been freed
    LEAK = "leak"  # a result's memory is never freed
    SEED = "seed"  # draws from a sequence of its own, whatever the seed
    SAME_DRAWS = "same_draws"  # draws the same numbers at every call
    DISTRIBUTION = "distribution"  # gives the larger of two draws
    ERROR = "error"  # raises another type of exception
    FALLBACK = "fallback"  # runs on the CPU, without a warning and uncounted
    ABORT = "abort"
    SEGFAULT = "segfault"
    HANG = "hang"


class When(str, Enum):
    """For which calls a fault acts, by the operator's tensor arguments. The values are what the C++ side goes by."""

    ALWAYS = "always"
    NON_CONTIGUOUS = "non_contiguous"
    OFFSET = "offset"
    EXPANDED = "expanded"
    EMPTY = "empty"
    REPEATED = "repeated"  # the shapes are those of the operator's previous call


@dataclass(frozen=True)
class Fault:
    """A fault of one overload.

    Attributes:
        operator: the overload as the device's kernel sees it, "aten::exp.out". That a fault acts only in an operator's
            gradient, or in its in-place or out= form, is said by naming that overload.
        kind: what the operator does.
        when: for which calls.
        dtype: only where a tensor argument has this dtype, by torch's name ("float32"); None for all.
        above: only where a tensor argument has more elements than this; 0 for all.
        relative, absolute: how far a NEAR value is off.
    """

    operator: str
    kind: FaultKind
    when: When = When.ALWAYS
    dtype: str | None = None
    above: int = 0
    relative: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        """The compact form that `parse` reads: aten::exp.out=values,offset,dtype=float32,above=65536."""
        parts: list[str] = [self.kind.value]
        if self.when is not When.ALWAYS:
            parts.append(self.when.value)
        plain = Fault(self.operator, self.kind)
        for name in ("dtype", "above", "relative", "absolute"):
            value = getattr(self, name)
            if value != getattr(plain, name):
                parts.append(f"{name}={value}")
        return f"{self.operator}={','.join(parts)}"

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The fault that a compact form describes. Raises SimulatorError that says what is wrong with the text."""
        operator, equals, rest = text.partition("=")
        kind, *parts = rest.split(",")
        if not equals or "::" not in operator:
            raise SimulatorError(f"fault {text!r}: write it as aten::exp.out=values,offset,dtype=float32")
        when = When.ALWAYS
        numbers: dict[str, float] = {"above": 0, "relative": 0.0, "absolute": 0.0}
        dtype = None
        for part in parts:
            name, equals, value = part.partition("=")
            if not equals:
                when = _member(When, name, text)
            elif name == "dtype":
                dtype = value
            elif name in numbers:
                numbers[name] = _number(value, text)
            else:
                raise SimulatorError(f"fault {text!r}: no setting {name!r} (there are dtype, {', '.join(numbers)})")
        return cls(
            operator,
            _member(FaultKind, kind, text),
            when,
            dtype,
            int(numbers["above"]),
            numbers["relative"],
            numbers["absolute"],
        )


def inject(fault: Fault) -> None:
    """Arm a fault in this process, beside those that are armed already; the first one of an operator is the one.

    Raises SimulatorError where the simulated device is not loaded, has no native kernel for the overload, or there is
    no such dtype.
    """
    profile = device.loaded_profile()
    if profile is None:
        raise SimulatorError("a fault needs the simulated mps device, which this process has not loaded")
    import torch

    overload = fault.operator.removeprefix("aten::")
    kernels = kernel_plan.plan(profile)
    if overload not in kernels.native:
        hint = near(overload, kernels.native)
        raise SimulatorError(f"fault {str(fault)!r}: the simulated device has no native kernel aten::{overload}{hint}")
    torch.ops.mpsmith_simulator.arm_fault(
        f"aten::{overload}",
        fault.kind.value,
        fault.when.value,
        _dtype(fault),
        fault.above,
        fault.relative,
        fault.absolute,
    )


def clear() -> None:
    """Disarm every fault in this process; without the simulated device there is none."""
    if device.is_loaded():
        import torch

        torch.ops.mpsmith_simulator.clear_faults()


def _dtype(fault: Fault) -> torch.dtype | None:
    import torch

    if fault.dtype is None:
        return None
    dtype = getattr(torch, fault.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise SimulatorError(f"fault {str(fault)!r}: torch has no dtype {fault.dtype!r}")
    return dtype


def _member(kind: type[Member], value: str, text: str) -> Member:
    try:
        return kind(value)
    except ValueError:
        members = ", ".join(member.value for member in kind)
        raise SimulatorError(f"fault {text!r}: no {value!r} (there are {members})") from None


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SimulatorError(f"fault {text!r}: {value!r} is no number") from None
