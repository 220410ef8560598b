"""Runs a program in a separate process, waits for it, and reads the recordings of its processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MpsmithError
from ..simulator.opening import DeviceKind
from .journal import read_folder
from .process import TraceOptions
from .recording import Recording

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A program that waits for a device that hangs takes no Ctrl-C: this one ends it.
LAST_INTERRUPT = 3


@dataclass(frozen=True)
class TracedProgram:
    """A script, or a module as for `python -m`, with its arguments."""

    name: str
    arguments: Sequence[str] = ()
    is_module: bool = False

    def command(self) -> list[str]:
        """The command line with this Python."""
        return [sys.executable, *(["-m"] if self.is_module else []), self.name, *self.arguments]


@dataclass(frozen=True)
class ProgramResult:
    """The end of a program and its recording.

    `status` is the exit code as in a shell: 128 plus the number of the signal that ended it.
    """

    status: int
    recording: Recording

    @property
    def killed_by(self) -> str:
        """The name of the signal that ended it, or "" for a normal end."""
        try:
            return signal.Signals(self.status - 128).name if self.status > 128 else ""
        except ValueError:
            return ""


def run(
    program: TracedProgram, device: DeviceKind, profile: str | None, *, kernels: bool = False, output: Any = None
) -> ProgramResult:
    """Run a program with fallbacks allowed, and record it and the processes that it starts.

    `kernels`: import mpsmith.kernels after torch. `output`: for its standard output, by default that of this process.
    Raises MpsmithError if the script or the device does not exist.
    """
    if not program.is_module and not Path(program.name).exists():
        raise MpsmithError(f"{program.name}: no such file")
    folder = Path(tempfile.mkdtemp(prefix="mpsmith-trace-"))
    try:
        options = TraceOptions(str(folder), os.getpid(), device.value, profile)
        environment = os.environ | options.to_environment() | ({"MPSMITH_AUTOLOAD": "1"} if kernels else {})
        process = subprocess.Popen(program.command(), env=environment, stdout=output)
        with _forwarding(process):
            status = process.wait()
        recording = read_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if error := recording.fact("error"):
        raise MpsmithError(error)
    return ProgramResult(status if status >= 0 else 128 - status, recording)


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals to the program, and report after it has ended; it must end at the third SIGINT."""
    interrupts = iter(range(1, LAST_INTERRUPT))

    def forward(number: int, frame: Any) -> None:
        if number == signal.SIGINT and next(interrupts, LAST_INTERRUPT) == LAST_INTERRUPT:
            process.kill()
        elif number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C of the terminal reaches the program directly: it goes to all foreground processes.

    The terminal is the controlling one; standard input and output may be redirected.
    """
    try:
        with Path("/dev/tty").open("rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
