"""Puts kernels under the MPS key of the dispatcher where the running torch has none, and takes them away again.

The dispatcher is one for the whole process: so is what is registered here. All functions may be called by any thread.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from ...errors import MpsmithError
from . import dispatcher
from .catalog import Kernel, all_kernels, finished, finished_entries, named, overrides
from .compilation import call_from_compiled_code
from .registered_kernel import AnsweringKernel

VARIABLE = "MPSMITH_KERNELS"
_OFF = frozenset({"off", "0", "none"})
_ON = frozenset({"", "on", "1", "all"})
# The name of all conditional overrides: no real device has verified them, so that they are asked for.
OVERRIDES = "overrides"

_lock = threading.RLock()
# What is to answer, by overload: the process's own choice first, then that of each `use` which somebody is inside of.
# The last one holds; a `use` may end before one that began later, for threads share the dispatcher.
_scopes: list[dict[str, Kernel]] = [{}]
_registered: dict[str, AnsweringKernel] = {}


class State(str, Enum):
    """Who answers an overload on mps, or why nobody of us does."""

    registered = "registered"
    replaced = "replaced"
    native = "native"
    available = "available"
    unfinished = "unfinished"
    not_in_torch = "not in this torch"
    no_original = "cannot be overridden"
    no_device = "no mps device"

    @property
    def explanation(self) -> str:
        """One clause that says what the state means."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    State.registered: "the kernel of mpsmith answers",
    State.replaced: "another library registered the overload later, and answers",
    State.native: "torch has its own kernel, which answers",
    State.available: "torch has no kernel; enable() registers the one of mpsmith",
    State.unfinished: "the registry does not call the operator implemented; enable() with its name registers it",
    State.not_in_torch: "the running torch does not have the overload",
    State.no_original: "torch.library.get_kernel is missing: a conditional override needs torch 2.9 or newer",
    State.no_device: "there is no mps device in this process: nothing was registered",
}


@dataclass(frozen=True)
class KernelStatus:
    """Where one kernel stands in this process."""

    overload: str
    family: str
    state: State


def enable(*names: str) -> tuple[str, ...]:
    """Register kernels for those overloads that the running torch lacks on mps.

    `names`: operators or overloads; by default all that the registry calls finished. "overrides" stands for the kernels
        that answer calls which torch's own refuse. Calling it again is harmless.
    Returns the overloads among them that mpsmith answers now; none where there is no mps device.
    Raises UnknownKernelError for a name without a kernel, RegistryError when the registry cannot be read.
    """
    with _lock:
        if not names and not dispatcher.mps_is_available():
            finished_entries()  # a registry that makes no sense is told on every machine; no family is loaded for it
            return ()
        return _want(_chosen(names) if names else finished())


def _chosen(names: Sequence[str]) -> tuple[Kernel, ...]:
    chosen = named([name for name in names if name != OVERRIDES])
    return chosen + tuple(kernel for kernel in overrides() if OVERRIDES in names and kernel not in chosen)


def disable(*names: str) -> tuple[str, ...]:
    """Take kernels away again, all of them by default; what was there before them answers.

    Returns the overloads that were registered. Raises UnknownKernelError for a name without a kernel.
    """
    with _lock:
        wanted = _scopes[-1]
        overloads = [kernel.overload for kernel in _chosen(names)] if names else list(wanted)
        removed = tuple(overload for overload in overloads if wanted.pop(overload, None) is not None)
        _register_what_is_wanted()
        return removed


@contextlib.contextmanager
def use(*names: str) -> Iterator[tuple[str, ...]]:
    """Inside, exactly these kernels are registered (none without names), for every thread; then those of before.

    Yields the overloads that mpsmith answers inside. Raises UnknownKernelError for a name without a kernel.
    """
    with _exactly(named(names)) as active:
        yield active


@contextlib.contextmanager
def counting(*names: str) -> Iterator[Counter[str]]:
    """Like `use`, and yields how often each overload has been answered by its kernel: a proof that it ran.

    What torch answered itself, or the CPU, is not counted. Raises UnknownKernelError for a name without a kernel.
    """
    calls: Counter[str] = Counter()
    with _exactly([_counted(kernel, calls) for kernel in named(names)]):
        yield calls


def _counted(kernel: Kernel, calls: Counter[str]) -> Kernel:
    @functools.wraps(kernel.function)
    def function(*args: Any, **kwargs: Any) -> Any:
        calls[kernel.overload] += 1
        return kernel.function(*args, **kwargs)

    return replace(kernel, function=function)


@contextlib.contextmanager
def _exactly(kernels: Sequence[Kernel]) -> Iterator[tuple[str, ...]]:
    """Inside, exactly these are registered as far as torch lacks them; yields their overloads. Then those of before.

    What is registered before and inside stays so all the time: callers in other threads never find it missing.
    """
    scope: dict[str, Kernel] = {}
    with _lock:
        _scopes.append(scope)
        active = _want(kernels)
    try:
        yield active
    finally:
        with _lock:
            _scopes[:] = [each for each in _scopes if each is not scope]
            _register_what_is_wanted()


def status() -> tuple[KernelStatus, ...]:
    """Where every kernel of this package stands in this process.

    Raises RegistryError when the registry cannot be read.
    """
    with _lock:
        complete = {kernel.overload for kernel in finished()}
        return tuple(KernelStatus(kernel.overload, kernel.family, _shown(kernel, complete)) for kernel in all_kernels())


def enable_from_environment() -> None:
    """What `import mpsmith.kernels` does: MPSMITH_KERNELS may be `off` or a list of names, separated by commas.

    `overrides` alone adds all conditional overrides to what is finished.

    A registry or a variable that makes no sense gives a warning: an import never fails for it.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted.lower() in _OFF:
        return
    names = () if wanted.lower() in _ON else tuple(name.strip() for name in wanted.split(",") if name.strip())
    try:
        if names == (OVERRIDES,):
            enable()
        enable(*names)
    except MpsmithError as error:
        source = f"{VARIABLE}={wanted}" if names else "mpsmith.kernels"
        warnings.warn(f"{source}: {error}; no kernel was registered", stacklevel=3)


def _shown(kernel: Kernel, complete: set[str]) -> State:
    """The state as it is told: what was registered here may have been registered by somebody else since."""
    standing = _registered.get(kernel.overload)
    return State.replaced if standing is not None and not standing.answers else _state(kernel, complete)


def _state(kernel: Kernel, complete: set[str] | None = None) -> State:
    """The state of a kernel; `complete` holds the overloads that are finished, None where that does not matter."""
    if kernel.overload in _registered:
        return State.registered
    if not dispatcher.mps_is_available():
        return State.no_device
    if not dispatcher.exists(kernel.overload):
        return State.not_in_torch
    native = dispatcher.has_mps_kernel(kernel.overload)
    native = native or (kernel.composite and dispatcher.is_left_alone(kernel.overload))
    if kernel.applies is None and native:
        return State.native
    if kernel.applies is not None and not hasattr(torch.library, "get_kernel"):
        return State.no_original
    return State.available if complete is None or kernel.overload in complete else State.unfinished


def _want(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """Add those that torch lacks to what is to answer; the overloads among them all that mpsmith answers now."""
    for kernel in kernels:
        if kernel.overload not in _scopes[-1] and _state(kernel) in (State.available, State.registered):
            _scopes[-1][kernel.overload] = kernel
    _register_what_is_wanted()
    return tuple(kernel.overload for kernel in kernels if kernel.overload in _scopes[-1])


def _register_what_is_wanted() -> None:
    """Bring the dispatcher from what is registered to what is wanted; what is both is not touched."""
    wanted = _scopes[-1]
    for overload in [overload for overload in _registered if overload not in wanted]:
        _registered.pop(overload).end()
    for overload, kernel in wanted.items():
        standing = _registered.get(overload)
        if standing is None:
            _registered[overload] = AnsweringKernel.of(kernel)
        elif standing.kernel != kernel:
            _registered[overload] = standing.replaced_by(kernel)
    call_from_compiled_code(kernel.operator for kernel in wanted.values() if kernel.extern)


def registered() -> Sequence[str]:
    """The overloads that mpsmith answers now, in the order in which they were asked for."""
    with _lock:
        return tuple(_scopes[-1])
