"""The call inside a case that a worker made last: written down before it is made, for the process may die of it."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.verdicts import AtFault
from .worker_exit import WorkerExit


def path_of(marker: Path) -> Path:
    """Where a worker with this marker file writes its last call."""
    return marker.with_suffix(".call")


def note(descriptor: int, overload: str, call: str) -> None:
    """Write down the innermost call that is being made; an empty overload when none is."""
    text = f"{overload}\n{call}".encode()
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


def read(path: Path, death: WorkerExit) -> AtFault | None:
    """The call during which a worker died; None where it died of something else."""
    try:
        overload, _, call = path.read_text(errors="replace").partition("\n")
    except FileNotFoundError:
        return None
    message = "does not return" if death.timed_out else f"ends the process: {death}"
    return AtFault(overload, call, message) if overload else None
