"""Checking modes of kernels (`fast`, `schedules`, `checked`), and treatment of subnormal numbers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Literal, cast, get_args

from ..errors import MetalValueError

Mode = Literal["fast", "schedules", "checked"]
# The most threads of a launch that an audit runs in the modes `checked` and `schedules`, which take much longer.
MOST_CHECKED_THREADS = 1 << 12

Subnormals = Literal["keep", "flush"]

_current: ContextVar[Mode | None] = ContextVar("mpsmith_metal_mode", default=None)
_subnormals: ContextVar[Subnormals | None] = ContextVar("mpsmith_metal_subnormals", default=None)


def validate_mode(mode: str) -> Mode:
    """The mode.

    Raises:
        MetalValueError: there is no such mode.
    """
    if mode not in get_args(Mode):
        raise MetalValueError(f"{mode!r} is not a checking mode: use {', '.join(get_args(Mode))}")
    return cast(Mode, mode)


@contextlib.contextmanager
def checking(mode: Mode) -> Iterator[Mode]:
    """Kernels called inside run in this mode, whatever the mode of their library.

    * `fast`: one forward run; small buffers are guarded.
    * `schedules`: threads forward, in reverse and in a random order must agree bit for bit; subnormal numbers are
      flushed, as Apple GPUs do.
    * `checked`: every load and store is checked for bounds and (in buffers of up to 4 MiB) races, every barrier for
      divergence, threadgroup memory for loads before stores; results that depend on inactive lanes are an
      UndefinedLanesError.
    """
    token = _current.set(validate_mode(mode))
    try:
        yield mode
    finally:
        _current.reset(token)


def current_mode(library_mode: Mode) -> Mode:
    """The mode of the innermost `checking`, or that of the library."""
    return _current.get() or library_mode


def affordable_mode(communicates: bool, threads: int) -> Mode:
    """The mode of the innermost `checking`; `fast` for a launch for which it takes too long or finds little.

    Args:
        communicates: whether the kernel's threads synchronize or use atomic operations.
        threads: of the launch.
    """
    return current_mode("fast") if communicates and threads <= MOST_CHECKED_THREADS else "fast"


def mode_from_environment() -> Mode:
    """`MPSMITH_METAL_MODE`, or `fast`."""
    return validate_mode(os.environ.get("MPSMITH_METAL_MODE", "fast"))


@contextlib.contextmanager
def subnormals(treatment: Subnormals) -> Iterator[None]:
    """Kernels called inside treat float32 and bfloat numbers below 2^-126 as zero ("flush"), or not ("keep")."""
    token = _subnormals.set(_validate_subnormals(treatment))
    try:
        yield
    finally:
        _subnormals.reset(token)


def flushes_subnormals(mode: Mode) -> bool:
    """Whether subnormals are flushed: by the innermost `subnormals`, else `MPSMITH_METAL_SUBNORMALS`, else the mode.

    Raises:
        MetalValueError: the variable is neither "keep" nor "flush".
    """
    chosen = _subnormals.get() or os.environ.get("MPSMITH_METAL_SUBNORMALS", "")
    if chosen:
        return _validate_subnormals(chosen) == "flush"
    return mode == "schedules"


def _validate_subnormals(treatment: str) -> Subnormals:
    if treatment not in get_args(Subnormals):
        raise MetalValueError(f"{treatment!r} is not a treatment of subnormal numbers: use keep or flush")
    return cast(Subnormals, treatment)
