"""Loads extensions, and the simulated Metal framework, into a process with the simulated mps device."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

from ..device import loading as device
from ..device.build import LIBRARY_NAME
from ..errors import ExtensionLoadError
from . import graphs, note
from .host_libraries import frameworks_library, torch_host_library

_loading = threading.Lock()
_frameworks: ctypes.CDLL | None = None
_loaded: dict[Path, ModuleType | None] = {}


def install_host() -> ctypes.CDLL:
    """Load the simulated Metal framework; further calls do nothing.

    Raises:
        ExtensionLoadError: the simulated device is not loaded; ExtensionError: the host side cannot be built here.
    """
    global _frameworks
    with _loading:
        if _frameworks is None:
            if not device.is_loaded():
                raise ExtensionLoadError(
                    "the simulated mps device is not loaded in this process, and its kernels would replace the "
                    "extension's: load it first"
                )
            _frameworks = _joined()
            _frameworks.objc_simulator_unknown_selectors()  # those of the framework
        return _frameworks


def set_macos(version: str) -> None:
    """Set the version of macOS, such as `14.0`. Call it before host code asks for the version, which it does once."""
    major, _, minor = version.partition(".")
    install_host().foundation_simulator_set_macos(ctypes.c_int64(int(major)), ctypes.c_int64(int(minor or 0)))


def waits() -> int:
    """How often host code waited for a command buffer in this process."""
    host = install_host()
    host.metal_simulator_waits.restype = ctypes.c_int64
    return int(host.metal_simulator_waits())


def load_extension(library: Path, name: str | None = None) -> ModuleType | None:
    """Load an extension of `build_extension`, once; returns its Python module, or None.

    Args:
        library: the file.
        name: of its python module; by default what it was built with.

    Raises:
        ExtensionLoadError: it was built for another torch, or another build of it is loaded already.
    """
    library = library.resolve()
    install_host()
    with _loading:
        if library in _loaded:
            return _loaded[library]
        made = _read_note(library)
        module_name = name or made.name
        if any(_known_as(path) == _known_as(library) for path in _loaded):
            raise ExtensionLoadError(
                f"another build of {library.name} is loaded in this process, and its operators cannot be registered "
                "twice: start a new process"
            )
        loaded = ctypes.CDLL(str(library))
        if hasattr(loaded, "mpsgraph_simulator_add_limit"):  # it is linked with MPSGraph
            graphs.loaded()
        defines_module = hasattr(loaded, f"PyInit_{module_name.rpartition('.')[2]}")
        # Otherwise it only registers operators.
        _loaded[library] = _import(library, module_name) if defines_module else None
        return _loaded[library]


def unknown_selectors(library: Path) -> list[str]:
    """Load a library of Objective-C code; return the selectors that it sends but that nothing implements."""
    host = install_host()
    ctypes.CDLL(str(library))
    host.objc_simulator_unknown_selectors.restype = ctypes.c_char_p
    return sorted(host.objc_simulator_unknown_selectors().decode().split())


def _known_as(library: Path) -> str:
    """The name of the library; with its package's name if it begins with an underscore, such as `_C`."""
    return f"{library.parent.name}/{library.name}" if library.name.startswith("_") else library.name


def _joined() -> ctypes.CDLL:
    import torch

    from .bridge import PROGRAMS

    (path,) = (path for path in torch.ops.loaded_libraries if LIBRARY_NAME in path)
    simulated = ctypes.CDLL(path)
    frameworks = ctypes.CDLL(str(frameworks_library()), mode=ctypes.RTLD_GLOBAL)
    torch_host = ctypes.CDLL(str(torch_host_library()), mode=ctypes.RTLD_GLOBAL)
    for function in (simulated.mpsmith_storage_anywhere, frameworks.objc_simulator_misuse_noted):
        function.restype = ctypes.c_void_p
    frameworks.metal_host_set_storage(
        ctypes.cast(simulated.mpsmith_storage_bytes, ctypes.c_void_p),
        ctypes.cast(simulated.mpsmith_storage_hold, ctypes.c_void_p),
        ctypes.cast(simulated.mpsmith_storage_gone, ctypes.c_void_p),
        ctypes.cast(simulated.mpsmith_storage_element_type, ctypes.c_void_p),
        ctypes.c_void_p(simulated.mpsmith_storage_anywhere()),
    )
    frameworks.metal_host_install(ctypes.byref(PROGRAMS))
    torch_host.mpsmith_set_storage_seen_as(ctypes.cast(simulated.mpsmith_storage_seen_as, ctypes.c_void_p))
    host_side = ctypes.addressof((ctypes.c_void_p * 4).in_dll(torch_host, "mpsmith_metal_host"))
    simulated.mpsmith_install_metal_host(
        ctypes.c_void_p(host_side),
        ctypes.c_void_p(frameworks.objc_simulator_misuse_noted()),
        ctypes.cast(frameworks.objc_simulator_raise_misuse, ctypes.c_void_p),
    )
    return frameworks


def _read_note(library: Path) -> note.ExtensionNote:
    try:
        made = note.read(library)
    except OSError as error:
        raise ExtensionLoadError(f"cannot read {library}: {error.strerror}") from None
    if made is None:
        raise ExtensionLoadError(f"{library} was not built for the simulated mps device: build it with mpsmith build")
    now = note.current(made.name)
    if made.torch != now.torch:
        raise ExtensionLoadError(
            f"{library} was built for torch {made.torch}, and this is torch {now.torch}: build it again"
        )
    if made.host != now.host:
        raise ExtensionLoadError(f"{library} was built by another mpsmith or compiler: build it again")
    return made


def _import(library: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ExtensionLoadError(f"{library} is not an extension module: its name has the wrong suffix")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
