"""Loads `.metallib` files: kernels from Apple's compiler (AIR), or the Metal source that a build writes instead.

Apple's compiler runs only on a Mac. If a build calls it here, the source is written to its output file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...cache import cache_folder, fingerprint
from ..clang import BuildCache
from ..errors import AirError, MetalRuntimeError
from ..metal.includes import ProgramSource
from ..metal.library import SimulatedKernel, compile_program
from ..metal.modes import mode_from_environment
from .bound_kernels import BoundLibrary
from .container import MAGIC
from .library import AirLibrary

MARK = b"mpsmith: Metal source in the place of compiled kernels\n"
"""What a file that holds source begins with."""


class SourceLibrary:
    """The kernels of a `.metallib` that holds Metal source, as attributes; `dir()` lists them."""

    def __init__(self, programs: Sequence[ProgramSource]) -> None:
        mode = mode_from_environment()
        self._libraries = [compile_program(program, mode=mode, device="mps") for program in programs]

    def __dir__(self) -> list[str]:
        return [name for library in self._libraries for name in dir(library)]

    def __getattr__(self, name: str) -> SimulatedKernel:
        for library in self._libraries:
            if name in dir(library):
                kernel: SimulatedKernel = getattr(library, name)
                return kernel
        raise AttributeError(f"the library has no kernel {name}")


def with_source(programs: Sequence[ProgramSource]) -> bytes:
    """The content of a file that holds Metal source instead of compiled programs. Headers are embedded."""
    rows = [{"text": program.text, "lines": program.lines, "defines": program.defines} for program in programs]
    return MARK + json.dumps(rows).encode()


def programs_in(data: bytes) -> tuple[ProgramSource, ...]:
    """The programs in a file that `with_source` made; empty for any other file."""
    if not data.startswith(MARK):
        return ()
    rows = json.loads(data[len(MARK) :])
    return tuple(ProgramSource(row["text"], row["lines"], defines=tuple(row["defines"])) for row in rows)


def compiled_library(data: bytes) -> BoundLibrary | None:
    """The kernels in a file of Apple's compiler, or None for any other file.

    Raises:
        MalformedLibraryError: it is damaged.
    """
    if not data.startswith(MAGIC):
        return None
    cache, key = BuildCache(cache_folder() / "metallib"), fingerprint(data)
    kept = cache.find(key, ".metallib")
    return BoundLibrary(AirLibrary(kept[0] if kept else cache.store(key, ".metallib", data)))


def load_metallib(source: bytes | bytearray | str | os.PathLike[str]) -> Any:
    """`torch.mps.load_metallib` for the simulated device: the kernels of a file or of its bytes.

    Raises:
        MetalRuntimeError: there is no such file, it is not a Metal library, or it is damaged.
        TypeError: it is neither bytes nor a path.
    """
    if not isinstance(source, bytes | bytearray | str | os.PathLike):
        raise TypeError(f"expected bytes or path, got {type(source).__name__}")
    try:
        data = bytes(source) if isinstance(source, bytes | bytearray) else Path(source).read_bytes()
    except OSError as error:
        raise MetalRuntimeError(f"cannot load the Metal library {source!s}: {error.strerror}") from None
    programs = programs_in(data)
    try:
        library = SourceLibrary(programs) if programs else compiled_library(data)
    except AirError as error:
        raise MetalRuntimeError(str(error)) from None
    if library is None:
        raise MetalRuntimeError("this is not a Metal library: a .metallib begins with MTLB")
    return library


def install() -> None:
    """Make `torch.mps.load_metallib` load both kinds of files. Call it after the `install` of `simulator.metal`."""
    import torch
    import torch.mps

    if hasattr(torch.mps, "load_metallib"):
        torch.mps.load_metallib = load_metallib
    for name in ("_mps_loadMetalllib", "_mps_loadMetallibFromPath"):  # for code that keeps torch's own functions
        setattr(torch._C, name, load_metallib)
