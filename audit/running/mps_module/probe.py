"""The form of a probe of torch.mps, and the checks that probes make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ....errors import MpsmithError

Probe = Callable[[], object]
DEVICE = "mps"


class ProbeError(MpsmithError):
    """A name exists but does not work; the message describes its behaviour in one line."""


@dataclass(frozen=True)
class Probed:
    """One row: the displayed name, the probe, and the names that must exist for it."""

    name: str
    probe: Probe
    needs: tuple[str, ...]


def expect(holds: object, otherwise: str) -> None:
    """Raise ProbeError with the text unless the condition holds."""
    if not holds:
        raise ProbeError(otherwise)


def ones(size: int = 4) -> torch.Tensor:
    """A small tensor on the device."""
    return torch.ones(size, device=DEVICE)


def row(name: str, probe: Probe, *needs: str) -> Probed:
    """A row of the table; by default only the name itself must exist."""
    return Probed(name, probe, needs or (name,))


def refuses(call: Probe, *kinds: type[Exception]) -> None:
    """Raise ProbeError unless the call raises one of these exceptions."""
    try:
        call()
    except kinds:
        return
    raise ProbeError(f"does not raise {' or '.join(kind.__name__ for kind in kinds)}")


def true(call: Callable[[], bool]) -> Probe:
    """A probe of a function that must return True."""
    return lambda: expect(call() is True, f"answers {call()!r}")


def boolean(call: Callable[[], bool]) -> Probe:
    """A probe of a function that must return a bool."""
    return lambda: expect(isinstance(call(), bool), f"answers {call()!r}")
