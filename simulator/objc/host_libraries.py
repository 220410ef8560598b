"""The libraries that extensions link with: Apple's frameworks, torch's mps backend on top of them, and optionally MPS.

They are built on first use and cached. The first needs no torch, so it serves every release.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..device.build import SOURCE_FOLDER
from .compiler import ExtensionBuildError, HostCompiler, Unit, demangled, host_compiler, link, torch_libraries

_HERE = Path(__file__).parent
IMAGE = _HERE / "runtime" / "image.cpp"
TENSOR_MEMORY = _HERE / "torch_host" / "seen_by_extensions.cpp"
_WITHOUT_ARC = frozenset({"NSObject.mm", "storage.mm"})
_FRAMEWORKS_CODE = ("simulator.objc.runtime", "simulator.objc.foundation", "simulator.objc.metal")
_FRAMEWORKS = "libmpsmith_apple_frameworks.so"
_TORCH_HOST = "libmpsmith_torch_host.so"
_GRAPHS = _HERE.parent / "mpsgraph"
# A declared method without an implementation, or one with other types, is an error.
_MISTAKES = ("incomplete-implementation", "mismatched-parameter-types", "mismatched-return-types")
_IMPLEMENTED = tuple(f"-Werror={mistake}" for mistake in _MISTAKES)


@functools.cache
def frameworks_library() -> Path:
    """The Objective-C runtime, Foundation, libdispatch and Metal.

    Raises:
        ExtensionError: it cannot be built here.
    """
    units = [
        Unit(path, arc=path.name not in _WITHOUT_ARC)
        for folder in ("runtime", "foundation", "metal")
        for path in sorted((_HERE / folder).iterdir())
        if path.suffix in (".cpp", ".mm")
    ]
    return built_library(_FRAMEWORKS, host_compiler(torch=False), units, (), _FRAMEWORKS_CODE)


@functools.cache
def torch_host_library() -> Path:
    """torch's MPSDevice, MPSStream, MetalShaderLibrary and so on, for the installed torch.

    Raises:
        ExtensionError: it cannot be built here.
    """
    units = [Unit(path, arc=False) for path in sorted((_HERE / "torch_host").glob("*.mm"))]
    code = (*_FRAMEWORKS_CODE, "simulator.objc.torch_host")
    return built_library(_TORCH_HOST, host_compiler(torch=True), [*units, Unit(IMAGE)], (frameworks_library(),), code)


@functools.cache
def graph_library() -> Path:
    """The stand-in for MPSGraph and the kernels of MPS, for the installed torch.

    Raises:
        ExtensionError: it cannot be built here.
    """
    units = [Unit(path, include=(SOURCE_FOLDER,), options=_IMPLEMENTED) for path in sorted(_GRAPHS.glob("*.mm"))]
    code = ("simulator.mpsgraph", "simulator.device.csrc")
    below = (frameworks_library(),)
    return built_library("libmpsmith_mpsgraph.so", host_compiler(torch=True), [*units, Unit(IMAGE)], below, code)


@functools.cache
def torch_graphs_library() -> Path:
    """The functions that torch's headers declare for graphs. Raises ExtensionError if it cannot be built here."""
    below = (graph_library(), torch_host_library(), frameworks_library())
    units = [Unit(_GRAPHS / "torch_host" / "graphs.mm", arc=False), Unit(IMAGE)]
    code = ("simulator.mpsgraph", "simulator.objc.torch_host")
    return built_library("libmpsmith_torch_graphs.so", host_compiler(torch=True), units, below, code)


def built_library(
    name: str, compiler: HostCompiler, units: Sequence[Unit], below: Sequence[Path], packages: Sequence[str]
) -> Path:
    """A library from the cache, built on first use.

    `below`: libraries to link with. `packages`: packages, without `mpsmith.`, whose changes cause a new build.
    Raises ExtensionBuildError if it does not compile or link.
    """
    code = fingerprint_of_code(*packages)
    folder = cache_folder() / "objc" / fingerprint(compiler.identity, name, code)
    library = folder / name
    if library.is_file():
        return library
    print(f"mpsmith: building {name} (once)", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as temporary:
        objects = [Path(temporary) / f"{unit.path.name}.o" for unit in units]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(compiler.compile, units, objects))
        target = Path(temporary) / name
        libraries = [f"-Wl,-soname,{name}", *(word for path in below for word in linked(path))]
        undefined = link(objects, target, [*libraries, *(torch_libraries() if compiler.torch else [])])
        if undefined:
            raise ExtensionBuildError(f"{name} does not link: {', '.join(demangled(undefined[:3]))} is undefined")
        target.replace(library)
    return library


def linked(library: Path) -> list[str]:
    """Linker options for a library, with its run path."""
    return [str(library), f"-Wl,-rpath,{library.parent}"]
