"""What native operators of the simulated device refuse: dtypes and arguments, with the errors of a Mac.

The caller knows what a Mac refuses: `audit.releases.coverage.refusals` reads it from PyTorch's tests and sources.
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
        argument: the tensor that decides, by its name in the schema; of a list the first tensor on mps.
        text: the error's.
        dtypes: those of the tensor that are refused ("int8"); all where there are none.
        dimensions: how many the tensor has; any where it is None.
        condition: what else must hold: "" for nothing, "reduce=prod" where that argument is that text, or one of the
            conditions that have names in csrc/refusals.cpp ("pool divides unevenly").
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
    """Let native overloads refuse these calls, beside what they refuse already. The first refusal that fits counts.

    Overloads without a native kernel are left as they are.
    Raises SimulatorError where the simulated device is not loaded or torch has no such dtype.
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
    """Refuse nothing any more; without the simulated device there is nothing to do."""
    if device.is_loaded():
        import torch

        torch.ops.mpsmith_simulator.clear_refusals()


def _dtype(name: str, refusal: Refusal) -> object:
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise SimulatorError(f"torch has no dtype {name!r}, which aten::{refusal.overload} was to refuse")
    return dtype
