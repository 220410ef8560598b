"""The device and the registration for the tests of one kernel, so that no other kernel runs for its overloads."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import torch

from ...audit.releases.surface.profiles import coverage_profile
from ...simulator.device import loading
from ...simulator.opening import MpsDevice, device_of_this_process
from ..runtime import dispatcher


def device() -> MpsDevice:
    """The mps device of this process."""
    return device_of_this_process(coverage_profile)


def device_without(*overloads: str) -> MpsDevice:
    """The device; if it is a simulated one, without its own kernels for these ATen overloads.

    Otherwise torch's kernel for another overload of the operator could run in place of the kernel under test. A real
    device, or one that is already loaded, is not changed.
    """
    if not loading.is_loaded() and not torch.backends.mps.is_built():
        coverage = coverage_profile(None)
        loading.load(replace(coverage, native=coverage.native.difference(overloads)))
    return device()


@contextmanager
def registered(module: str | Path) -> Iterator[list[str]]:
    """In this context, the functions in a module's KERNELS table are registered for mps. Yields the called overloads.

    Operators of another library, such as torchvision, are left out if that library is not loaded.
    `module`: its dotted name, or the path of its file.
    """
    device()
    table = _imported(module).KERNELS
    libraries = []
    called: list[str] = []
    for overload, function in table:
        namespace, _, name = overload.rpartition("::")
        if namespace not in ("", "aten") and not dispatcher.exists(overload):
            continue
        library = torch.library.Library(namespace or "aten", "IMPL")  # type: ignore[no-untyped-call]
        _register(library, name, _recording(function, overload, called))
        libraries.append(library)
    try:
        yield called
    finally:
        for library in libraries:
            library._destroy()  # type: ignore[no-untyped-call]


def _recording(function: Callable[..., Any], overload: str, called: list[str]) -> Callable[..., Any]:
    """The function, recording its calls."""

    @wraps(function)
    def recording(*args: Any, **kwargs: Any) -> Any:
        called.append(overload)
        return function(*args, **kwargs)

    return recording


def _register(library: Any, name: str, function: Callable[..., Any]) -> None:
    try:
        library.impl(name, function, "MPS", allow_override=True)
    except TypeError:  # releases before allow_override simply override
        library.impl(name, function, "MPS")


def _imported(module: str | Path) -> Any:
    if isinstance(module, str):
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(f"scaffolded_{module.stem}", module)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is not a Python file")
    imported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(imported)
    return imported
