"""Runs a user's program and counts the operators that fall back to the CPU in it, backward included."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

from ..errors import MpsmithError
from ..simulator.device import inheritance
from .running.device import open_device
from .selection import DeviceKind


@dataclass(frozen=True)
class Trace:
    """What a program did on mps.

    Attributes:
        simulated: whether the device was the simulated one.
        fallbacks: how often each operator ran on the CPU.
        failure: the exception that ended the program, or None; its traceback starts in the program.
    """

    simulated: bool
    fallbacks: Counter[str]
    failure: BaseException | None


def trace(
    program: str, arguments: Sequence[str], device: DeviceKind, profile: str | None, *, is_module: bool = False
) -> Trace:
    """Run a script, or a module as `python -m` does, as a program of its own and count its fallbacks.

    PYTORCH_ENABLE_MPS_FALLBACK must be set before torch is imported, so this belongs into a fresh process.
    What the program starts has the same device; what falls back there is not counted.
    Raises MpsmithError when there is no such program or no device.
    """
    if not is_module and not Path(program).is_file():
        raise MpsmithError(f"{program}: no such file")
    folder = Path.cwd() if is_module else Path(program).resolve().parent
    opened = open_device(device, profile)
    if opened.simulated:
        inheritance.let_children_inherit(profile)
    fallbacks: Counter[str] = Counter()
    failure: BaseException | None = None
    with _program([program, *arguments], folder), _counting(fallbacks, simulated=opened.simulated):
        if is_module and not _is_there(program):
            raise MpsmithError(f"there is no module {program}")
        try:
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
        except (SystemExit, Exception) as end:
            failure = end.with_traceback(_in_program(end.__traceback__))
    return Trace(opened.simulated, fallbacks, failure)


@contextmanager
def _program(arguments: list[str], folder: Path) -> Iterator[None]:
    """The interpreter as a program expects it: its own arguments, its folder on the path."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = arguments
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


def _in_program(frames: TracebackType | None) -> TracebackType | None:
    """The frames without those of mpsmith and runpy, which are the first ones."""
    while frames and frames.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        frames = frames.tb_next
    return frames


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
