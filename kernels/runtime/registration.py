"""Puts kernels under the MPS key of the dispatcher where the running torch has none, and takes them away again.

The dispatcher is one for the whole process: so is what is registered here. All functions may be called by any thread.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
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
from .catalog import Kernel, all_kernels, finished, finished_entries, named, overrides
from .compilation import call_from_compiled_code

VARIABLE = "MPSMITH_KERNELS"
_OFF = frozenset({"off", "0", "none"})
_ON = frozenset({"", "on", "1", "all"})
# The name of all conditional overrides: no real device has verified them, so that they are asked for.
OVERRIDES = "overrides"

_lock = threading.RLock()
# A registration lives as long as its library: dropping it brings back what was there before.
_registered: dict[str, torch.library.Library] = {}
# Of these, the overloads of operators that compiled code is to call, and the operators.
_extern: dict[str, str] = {}
_FAKES_OVERRIDE = "allow_override" in inspect.signature(torch.library.register_fake).parameters
_TAKES_OVERRIDE = "allow_override" in inspect.signature(torch.library.Library.impl).parameters


class State(str, Enum):
    """Who answers an overload on mps, or why nobody of us does."""

    registered = "registered"
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
        return _register_lacking(_chosen(names) if names else finished())


def _chosen(names: Sequence[str]) -> tuple[Kernel, ...]:
    chosen = named([name for name in names if name != OVERRIDES])
    return chosen + tuple(kernel for kernel in overrides() if OVERRIDES in names and kernel not in chosen)


def disable(*names: str) -> tuple[str, ...]:
    """Take kernels away again, all of them by default; what was there before them answers.

    Returns the overloads that were registered. Raises UnknownKernelError for a name without a kernel.
    """
    with _lock:
        overloads = [kernel.overload for kernel in _chosen(names)] if names else list(_registered)
        removed = tuple(overload for overload in overloads if overload in _registered)
        for overload in removed:
            _registered.pop(overload)._destroy()  # type: ignore[no-untyped-call]
            _extern.pop(overload, None)
        call_from_compiled_code(_extern.values())
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
    """Inside, exactly these are registered as far as torch lacks them; yields their overloads. Then those of before."""
    with _lock:
        before = tuple(_registered)
        disable()
        active = _register_lacking(kernels)
    try:
        yield active
    finally:
        with _lock:
            disable()
            # The name of an operator's default overload stands for all its overloads: exactly those of before.
            _register_lacking([kernel for kernel in named(before) if kernel.overload in before])


def status() -> tuple[KernelStatus, ...]:
    """Where every kernel of this package stands in this process.

    Raises RegistryError when the registry cannot be read.
    """
    with _lock:
        complete = {kernel.overload for kernel in finished()}
        return tuple(KernelStatus(kernel.overload, kernel.family, _state(kernel, complete)) for kernel in all_kernels())


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


def _register_lacking(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """Register those that are available here; the overloads among them all that mpsmith answers now."""
    for kernel in kernels:
        if _state(kernel) is State.available:
            _register(kernel)
    call_from_compiled_code(_extern.values())
    return tuple(kernel.overload for kernel in kernels if kernel.overload in _registered)


def _register(kernel: Kernel) -> None:
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    function, with_keyset = kernel.function, False
    if kernel.applies is not None:
        function, with_keyset = _conditional(kernel, kernel.applies), True
    options: dict[str, Any] = {"with_keyset": with_keyset}
    if _TAKES_OVERRIDE:
        options["allow_override"] = True
    with warnings.catch_warnings():
        # Replacing torch's own hand-over to the CPU is what this is for.
        warnings.filterwarnings("ignore", message="(?s).*[Oo]verriding a previously registered kernel")
        library.impl(  # type: ignore[no-untyped-call]
            kernel.overload.removeprefix("aten::"), function, "MPS", **options
        )
        if kernel.composite:
            # torch's own hand-over to the CPU hides the operators below from autograd.
            library.impl(  # type: ignore[no-untyped-call]
                kernel.overload.removeprefix("aten::"), function, "AutogradMPS", **options
            )
    for overload, fake in kernel.fakes:
        if dispatcher.lacks_fake(overload):
            library.impl(overload.removeprefix("aten::"), fake, "Meta")  # type: ignore[no-untyped-call]
        elif _FAKES_OVERRIDE and dispatcher.fake_takes_numbers_alone(overload):
            torch.library.register_fake(overload, fake, lib=library, allow_override=True)
    _registered[kernel.overload] = library
    if kernel.extern:
        _extern[kernel.overload] = kernel.operator


def _conditional(kernel: Kernel, applies: Callable[..., bool]) -> Callable[..., Any]:
    """The kernel for calls that it applies to, torch's own for all others."""
    original = torch.library.get_kernel(kernel.overload, "MPS")

    def choose(keyset: torch.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        if applies(*args, **kwargs):
            return kernel.function(*args, **kwargs)
        return original.call_boxed(keyset, *args, **kwargs)

    return choose


def registered() -> Sequence[str]:
    """The overloads that mpsmith answers now, in the order in which they were registered."""
    with _lock:
        return tuple(_registered)
