"""Registers and unregisters kernels under the MPS key of the dispatcher, for overloads that the running torch lacks.

The dispatcher is global to the process, and so are registrations. All functions are thread-safe.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from ...errors import MpsmithError
from . import dispatcher
from .catalog import Kernel, all_kernels, finished, finished_entries, named, of_other_libraries, overrides
from .compilation import call_from_compiled_code
from .import_hooks import on_import
from .registered_kernel import KernelRegistration

VARIABLE = "MPSMITH_KERNELS"
_OFF = frozenset({"off", "0", "none"})
_ON = frozenset({"", "on", "1", "all"})
# The module after which the operators of another library exist.
_DEFINING = {"torchvision": "torchvision.extension"}
# The name for all overrides.
OVERRIDES = "overrides"

_lock = threading.RLock()
# The kernels to register, by overload: first those of `enable`, then those of each open `use`.
# The last scope counts. A `use` may end before one that began later, because threads share the dispatcher.
_scopes: list[dict[str, Kernel]] = [{}]
_registered: dict[str, KernelRegistration] = {}
# Those that `enable` was asked for, of libraries that are not loaded yet.
_awaited: dict[str, Kernel] = {}


class State(str, Enum):
    """Whether an overload has a kernel of mpsmith on mps, or why not."""

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
        """An explanation of the state, in one clause."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    State.registered: "the kernel of mpsmith is registered",
    State.replaced: "another library registered the overload later",
    State.native: "torch has its own kernel",
    State.available: "torch has no kernel; enable() registers the one of mpsmith",
    State.unfinished: "the operator is not implemented in the registry; enable() with its name registers it",
    State.not_in_torch: "the running torch lacks the overload, or its library is not loaded",
    State.no_original: "torch.library.get_kernel is missing: an override needs torch 2.9 or newer",
    State.no_device: "this process has no mps device: nothing was registered",
}


@dataclass(frozen=True)
class KernelStatus:
    """The state of one kernel in this process."""

    overload: str
    family: str
    state: State


def enable(*names: str) -> tuple[str, ...]:
    """Register kernels for overloads that the running torch lacks on mps.

    `names`: operators or overloads; by default all that are finished in the registry, and all overrides. "overrides"
        selects all overrides.
        Calling it again is harmless.
    Returns those of the overloads that are registered now; none if there is no mps device.
    Raises UnknownKernelError for a name without a kernel, RegistryError if the registry cannot be read.
    """
    with _lock:
        if not names and not dispatcher.mps_is_available():
            finished_entries()  # report a broken registry on every machine; this loads no family
            return ()
        chosen = _chosen(names) if names else _default()
        for library, module in _DEFINING.items():
            awaited = {kernel.overload: kernel for kernel in chosen if kernel.library == library}
            if awaited and module not in sys.modules:
                _awaited.update(awaited)
                on_import(module, _add_awaited)
        return _add(chosen)


def _add_awaited() -> None:
    with _lock:
        _add([_awaited.pop(overload) for overload in list(_awaited) if dispatcher.exists(overload)], _scopes[0])


def _chosen(names: Sequence[str]) -> tuple[Kernel, ...]:
    chosen = named([name for name in names if name != OVERRIDES])
    return chosen + tuple(kernel for kernel in overrides() if OVERRIDES in names and kernel not in chosen)


def _default() -> tuple[Kernel, ...]:
    """The kernels to register without names; a finished kernel may be an override."""
    return tuple({kernel.overload: kernel for kernel in (*finished(), *overrides(), *of_other_libraries())}.values())


def disable(*names: str) -> tuple[str, ...]:
    """Unregister kernels, all of them by default; the previous kernels become active again.

    Returns the overloads that were registered. Raises UnknownKernelError for a name without a kernel.
    """
    with _lock:
        wanted = _scopes[-1]
        overloads = [kernel.overload for kernel in _chosen(names)] if names else [*wanted, *_awaited]
        for overload in overloads:
            _awaited.pop(overload, None)
        removed = tuple(overload for overload in overloads if wanted.pop(overload, None) is not None)
        _update_dispatcher()
        return removed


@contextlib.contextmanager
def use(*names: str) -> Iterator[tuple[str, ...]]:
    """In this context, exactly these kernels are registered (none without names), for every thread.

    Yields the overloads that are registered inside. Raises UnknownKernelError for a name without a kernel.
    """
    with _exactly(named(names)) as active:
        yield active


@contextlib.contextmanager
def counting(*names: str) -> Iterator[Counter[str]]:
    """Like `use`; yields how often the kernel of each overload was called, which proves that it ran.

    Calls that ran torch's own kernel, or on the CPU, are not counted. Raises UnknownKernelError for an unknown name.
    """
    calls: Counter[str] = Counter()

    def count(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls[kernel.overload] += 1

    with observing(count, *names):
        yield calls


@contextlib.contextmanager
def observing(see: Callable[[Kernel, tuple[Any, ...], dict[str, Any]], None], *names: str) -> Iterator[None]:
    """Like `use`; `see` is called with each kernel that runs, and its arguments. Raises UnknownKernelError, too."""
    with _exactly([_observed(kernel, see) for kernel in named(names)]):
        yield


def _observed(kernel: Kernel, see: Callable[[Kernel, tuple[Any, ...], dict[str, Any]], None]) -> Kernel:
    @functools.wraps(kernel.function)
    def function(*args: Any, **kwargs: Any) -> Any:
        see(kernel, args, kwargs)
        return kernel.function(*args, **kwargs)

    return replace(kernel, function=function)


@contextlib.contextmanager
def _exactly(kernels: Sequence[Kernel]) -> Iterator[tuple[str, ...]]:
    """In this context, exactly these kernels are registered, if torch lacks them. Yields their overloads.

    Kernels that are registered both before and inside stay registered, so that other threads can call them at any time.
    """
    scope: dict[str, Kernel] = {}
    with _lock:
        _scopes.append(scope)
        active = _add(kernels)
    try:
        yield active
    finally:
        with _lock:
            _scopes[:] = [other for other in _scopes if other is not scope]
            _update_dispatcher()


def status() -> tuple[KernelStatus, ...]:
    """The states of all kernels of this package in this process.

    Raises RegistryError if the registry cannot be read.
    """
    with _lock:
        complete = {kernel.overload for kernel in _default()}
        return tuple(KernelStatus(kernel.overload, kernel.family, _shown(kernel, complete)) for kernel in all_kernels())


def enable_from_environment() -> None:
    """Register kernels for `import mpsmith.kernels`: MPSMITH_KERNELS may be `off` or names separated by commas.

    A broken registry or variable gives a warning, so that the import never fails.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted.lower() in _OFF:
        return
    names = () if wanted.lower() in _ON else tuple(name.strip() for name in wanted.split(",") if name.strip())
    try:
        enable(*names)
    except MpsmithError as error:
        source = f"{VARIABLE}={wanted}" if names else "mpsmith.kernels"
        warnings.warn(f"{source}: {error}; no kernel was registered", stacklevel=3)


def _shown(kernel: Kernel, complete: set[str]) -> State:
    """The state as shown to users: `replaced` if another library has registered the overload since."""
    registration = _registered.get(kernel.overload)
    return State.replaced if registration is not None and not registration.is_active else _state(kernel, complete)


def _state(kernel: Kernel, complete: set[str] | None = None) -> State:
    """The state of a kernel; `complete` has the finished overloads, None if their state does not matter."""
    if kernel.overload in _registered:
        return State.registered
    if not dispatcher.mps_is_available():
        return State.no_device
    if not dispatcher.exists(kernel.overload):
        return State.not_in_torch
    native = dispatcher.has_mps_kernel(kernel.overload, kernel.key)
    if not native and (kernel.derived or (kernel.composite and dispatcher.is_composite(kernel.overload))):
        return State.native
    conditional = kernel.applies is not None or (native and kernel.on_cpu is not None)
    if native and not conditional:
        return State.native
    if conditional and not hasattr(torch.library, "get_kernel"):
        return State.no_original
    return State.available if complete is None or kernel.overload in complete else State.unfinished


def _add(kernels: Sequence[Kernel], scope: dict[str, Kernel] | None = None) -> tuple[str, ...]:
    """Add the kernels that torch lacks to a scope, the last one by default.

    Returns those of their overloads that are registered now.
    """
    scope = _scopes[-1] if scope is None else scope
    for kernel in kernels:
        if kernel.overload not in scope and _state(kernel) in (State.available, State.registered):
            scope[kernel.overload] = kernel
    _update_dispatcher()
    return tuple(kernel.overload for kernel in kernels if kernel.overload in _scopes[-1])


def _update_dispatcher() -> None:
    """Make the dispatcher match the last scope. Kernels that are already registered are not touched."""
    wanted = _scopes[-1]
    for overload in [overload for overload in _registered if overload not in wanted]:
        _registered.pop(overload).unregister()
    for overload, kernel in wanted.items():
        registration = _registered.get(overload)
        if registration is None:
            _registered[overload] = KernelRegistration.of(kernel)
        elif registration.kernel != kernel:
            _registered[overload] = registration.replaced_by(kernel)
    call_from_compiled_code(kernel.operator for kernel in wanted.values() if kernel.extern)


def registered() -> Sequence[str]:
    """The overloads that are registered now, in the order in which they were requested."""
    with _lock:
        return tuple(_scopes[-1])
