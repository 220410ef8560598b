"""Dtypes that native operators of the simulated device refuse on request, with the errors of a Mac.

What to refuse is the caller's knowledge: `audit.coverage.dtype_refusals` has it from PyTorch's own tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import SimulatorError
from . import loading as device


def refuse(dtypes: Mapping[str, Iterable[str]]) -> None:
    """Let native overloads (without namespace) refuse these dtypes ("int8") of their first mps tensor.

    Overloads without a native kernel are left as they are. Adds to what is refused already.
    Raises SimulatorError where the simulated device is not loaded or torch has no such dtype.
    """
    if not device.is_loaded():
        raise SimulatorError(
            "dtypes can be refused by the simulated mps device only, which this process has not loaded"
        )
    import torch

    for overload, names in dtypes.items():
        for name in names:
            dtype = getattr(torch, name, None)
            if not isinstance(dtype, torch.dtype):
                raise SimulatorError(f"torch has no dtype {name!r}, which aten::{overload} was to refuse")
            torch.ops.mpsmith_simulator.refuse_dtype(f"aten::{overload}", dtype)


def clear() -> None:
    """Refuse no dtypes any more; without the simulated device there is nothing to do."""
    if device.is_loaded():
        import torch

        torch.ops.mpsmith_simulator.clear_refusals()
