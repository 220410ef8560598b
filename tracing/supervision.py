"""The side of `mpsmith trace`: starts the program as a process of its own, waits, and reads what was seen."""

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
from .metal_log import Logged
from .process import Order
from .recording import Recording

# Seconds for which a child that outlives the program may go on writing.
_LAST_WORDS = 5.0

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Program:
    """What is to be run: a script, or a module as for `python -m`, with its arguments."""

    name: str
    arguments: Sequence[str] = ()
    is_module: bool = False

    def command(self) -> list[str]:
        """As it would be typed, with this Python."""
        return [sys.executable, *(["-m"] if self.is_module else []), self.name, *self.arguments]


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what was seen of it until then.

    `status` is its exit code as a shell gives it: 128 and the number of the signal that ended it. `metal_log` is what
    torch logged of the GPU.
    """

    status: int
    recording: Recording
    metal_log: Sequence[Logged] = ()

    @property
    def killed_by(self) -> str:
        """The name of the signal that ended it, or "" where it ended by itself."""
        try:
            return signal.Signals(self.status - 128).name if self.status > 128 else ""
        except ValueError:
            return ""


def run(
    program: Program,
    device: DeviceKind,
    profile: str | None,
    *,
    lines: bool = True,
    kernels: bool = False,
    output: Any = None,
    signposts: bool = False,
    metal_log: bool = False,
) -> Ended:
    """Run a program with fallbacks allowed, and record it and the processes that it starts.

    `kernels`: with `import mpsmith.kernels` at the end of its import of torch. `output`: where its standard output
    goes, by default where that of this process goes. `signposts`: torch writes them for Instruments. `metal_log`: torch
    logs what the GPU did; the program's standard error then comes through this process, without those lines.
    Raises MpsmithError where there is no such script, or no such device.
    """
    if not program.is_module and not Path(program.name).exists():
        raise MpsmithError(f"{program.name}: no such file")
    folder = Path(tempfile.mkdtemp(prefix="mpsmith-trace-"))
    try:
        order = Order(str(folder), os.getpid(), device.value, profile, lines, signposts)
        environment = os.environ | order.to_environment() | ({"MPSMITH_AUTOLOAD": "1"} if kernels else {})
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
    return Ended(status if status >= 0 else 128 - status, recording, metal_log_lines.together(logged))


def _wait(process: subprocess.Popen[bytes]) -> int:
    with _forwarding(process):
        return process.wait()


@contextmanager
def _reading(process: subprocess.Popen[bytes]) -> Iterator[list[Logged]]:
    """Take torch's lines out of what comes through a pipe for standard error, and hand on the others as they come."""
    logged: list[Logged] = []
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
    reader.join(_LAST_WORDS)


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals are for the program: it ends as it will, and then there is something to tell."""

    def forward(number: int, frame: Any) -> None:
        if number != signal.SIGINT or not _is_in_front():
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_front() -> bool:
    """Whether Ctrl-C of a terminal reaches the program without our help: it goes to all processes in front."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp() if sys.__stdin__ else False
    except (OSError, ValueError):
        return False
