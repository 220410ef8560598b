"""Records each inner call of a case before it is made, because it may end the process."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.verdicts import AtFault
from .worker_exit import WorkerExit


def path_of(marker: Path) -> Path:
    """The file in which a worker with this marker file records its last call."""
    return marker.with_suffix(".call")


def note(descriptor: int, overload: str, call: str) -> None:
    """Record the current innermost call; an empty overload if there is none."""
    text = f"{overload}\n{call}".encode()
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


def read(path: Path, worker_exit: WorkerExit) -> AtFault | None:
    """The call that ended a worker; None if the worker ended outside of a call."""
    try:
        overload, _, call = path.read_text(errors="replace").partition("\n")
    except FileNotFoundError:
        return None
    message = "does not return" if worker_exit.timed_out else f"ends the process: {worker_exit}"
    return AtFault(overload, call, message) if overload else None
