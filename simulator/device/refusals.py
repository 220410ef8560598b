"""Makes native operators of the simulated device refuse dtypes and arguments, with the errors of a Mac.

The caller knows these errors: `audit.releases.coverage.refusals` reads it from PyTorch's tests and sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import SimulatorError
from . import loading as device


@dataclass(frozen=True)
class Refusal:
    """Calls of one overload that raise `text`, as a Mac's kernel does.

    Attributes:
        overload: without namespace ("addr.out").
        argument: the name of the tensor to check; in a list, the first tensor on mps.
        text: the error message.
        dtypes: the refused dtypes ("int8"); empty for all.
        dimensions: the refused number of dimensions; None for any.
        condition: another condition: "" for none, "reduce=prod" for an argument with this value, or a name in
            csrc/refusals.cpp ("pool divides unevenly").
        error: "RuntimeError", "TypeError" or "NotImplementedError".
    """

    overload: str
    argument: str
    text: str
    dtypes: tuple[str, ...] = ()
    dimensions: int | None = None
    condition: str = ""
    error: str = "RuntimeError"


def refuse(refusals: Iterable[Refusal]) -> None:
    """Add refusals to native overloads; the first that applies is raised.

    Overloads without a native kernel do not change.
    Raises SimulatorError if the simulated device is not loaded or torch has no such dtype.
    """
    if not device.is_loaded():
        raise SimulatorError("calls can be refused by the simulated mps device only, which this process has not loaded")
    import torch

    for refusal in refusals:
        torch.ops.mpsmith_simulator.refuse(
            f"aten::{refusal.overload}",
            refusal.argument,
            [_dtype(name, refusal) for name in refusal.dtypes],
            refusal.dimensions,
            refusal.condition,
            refusal.error,
            refusal.text,
        )


def clear() -> None:
    """Remove all refusals, if the simulated device is loaded."""
    if device.is_loaded():
        import torch

        torch.ops.mpsmith_simulator.clear_refusals()


def _dtype(name: str, refusal: Refusal) -> object:
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise SimulatorError(f"torch has no dtype {name!r}, which aten::{refusal.overload} was to refuse")
    return dtype
