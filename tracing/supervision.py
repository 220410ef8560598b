"""Runs a program in a separate process, waits for it, and reads what its processes recorded."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MpsmithError
from ..simulator.opening import DeviceKind
from . import metal_log as metal_log_lines
from .journal import read_folder
from .metal_log import LoggedWork
from .process import TraceOptions
from .recording import Recording

# Seconds to wait for the output of a child that outlives the program.
_READ_TIMEOUT = 5.0

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Program:
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

    `status` is the exit code as in a shell: 128 plus the number of the signal that ended it. `metal_log` is what torch
    logged about the GPU.
    """

    status: int
    recording: Recording
    metal_log: Sequence[LoggedWork] = ()

    @property
    def killed_by(self) -> str:
        """The name of the signal that ended it, or "" for a normal end."""
        try:
            return signal.Signals(self.status - 128).name if self.status > 128 else ""
        except ValueError:
            return ""


def run(
    program: Program,
    device: DeviceKind,
    profile: str | None,
    *,
    kernels: bool = False,
    output: Any = None,
    signposts: bool = False,
    metal_log: bool = False,
) -> ProgramResult:
    """Run a program with fallbacks allowed, and record it and the processes that it starts.

    `kernels`: import mpsmith.kernels after torch. `output`: for its standard output, by default that of this process.
    `signposts`: torch writes signposts for Instruments. `metal_log`: torch logs the work of the GPU; the program's
    standard error then passes through this process, without those lines.
    Raises MpsmithError where the script or the device does not exist.
    """
    if not program.is_module and not Path(program.name).exists():
        raise MpsmithError(f"{program.name}: no such file")
    folder = Path(tempfile.mkdtemp(prefix="mpsmith-trace-"))
    try:
        options = TraceOptions(str(folder), os.getpid(), device.value, profile, signposts)
        environment = os.environ | options.to_environment() | ({"MPSMITH_AUTOLOAD": "1"} if kernels else {})
        if metal_log:
            environment |= {metal_log_lines.VARIABLE: str(metal_log_lines.OPTIONS)}
        errors = subprocess.PIPE if metal_log else None
        process = subprocess.Popen(program.command(), env=environment, stdout=output, stderr=errors)
        with _reading(process) as logged:
            status = _wait(process)
        recording = read_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if error := recording.fact("error"):
        raise MpsmithError(error)
    return ProgramResult(status if status >= 0 else 128 - status, recording, metal_log_lines.merged(logged))


def _wait(process: subprocess.Popen[bytes]) -> int:
    with _forwarding(process):
        return process.wait()


@contextmanager
def _reading(process: subprocess.Popen[bytes]) -> Iterator[list[LoggedWork]]:
    """Collect torch's log lines from the program's standard error, and pass the other lines on."""
    logged: list[LoggedWork] = []
    if process.stderr is None:
        yield logged
        return
    stream = process.stderr

    def read() -> None:
        for line in stream:
            if found := metal_log_lines.parse(line.decode(errors="replace")):
                logged.append(found)
            else:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield logged
    reader.join(_READ_TIMEOUT)


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals to the program, and report after it has ended."""

    def forward(number: int, frame: Any) -> None:
        if number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C of the terminal reaches the program directly: it goes to all foreground processes."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp() if sys.__stdin__ else False
    except (OSError, ValueError):
        return False
