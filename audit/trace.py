"""Runs a user's program and counts the operators that fall back to the CPU in it, backward included."""

from __future__ import annotations

import runpy
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..errors import MpsmithError
from .running.device import open_device
from .selection import DeviceKind


@dataclass(frozen=True)
class Trace:
    """What a program did on mps.

    Attributes:
        simulated: whether the device was the simulated one.
        fallbacks: how often each operator ran on the CPU.
        failure: the exception that ended the program, or None. SystemExit with status 0 is none.
    """

    simulated: bool
    fallbacks: Counter[str]
    failure: BaseException | None


def trace(script: Path, arguments: Sequence[str], device: DeviceKind, profile: str | None) -> Trace:
    """Run `script` as a program of its own and count its fallbacks.

    PYTORCH_ENABLE_MPS_FALLBACK must be set before torch is imported, so this belongs into a fresh process.
    Raises MpsmithError when the script cannot be read or there is no device.
    """
    if not script.is_file():
        raise MpsmithError(f"{script}: no such file")
    opened = open_device(device, profile)
    fallbacks: Counter[str] = Counter()
    failure: BaseException | None = None
    with _program(script, arguments), _counting(fallbacks, simulated=opened.simulated):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            failure = end if end.code not in (None, 0) else None
        except Exception as error:
            failure = error
    return Trace(opened.simulated, fallbacks, failure)


@contextmanager
def _program(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """The interpreter as the script expects it: its own arguments, its folder on the path."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


@contextmanager
def _counting(fallbacks: Counter[str], *, simulated: bool) -> Iterator[None]:
    if simulated:
        from ..simulator.device import loading as device

        device.reset_counters()
        try:
            yield
        finally:
            fallbacks.update({name: calls.fallback for name, calls in device.counters().items() if calls.fallback})
        return
    with _counting_warnings(fallbacks):
        yield


@contextmanager
def _counting_warnings(fallbacks: Counter[str]) -> Iterator[None]:
    """On a real device each fallback warns; those warnings are counted, all others reach the user as ever."""
    from .judging.fallbacks import FALLBACK_WARNING

    show = warnings.showwarning

    def count(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        match = FALLBACK_WARNING.search(str(message))
        if match:
            fallbacks[match[1]] += 1
        else:
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", message="The operator '")
        warnings.showwarning = count
        yield
