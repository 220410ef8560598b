"""Builds `.mm` and `.cpp` files into an extension for the simulated mps device of this machine."""

from __future__ import annotations

import os
import re
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..clang import Diagnostic
from . import note
from .closed_functions import refusing_of_the_host
from .compiler import ExtensionBuildError, Unit, demangled, host_compiler, link, torch_libraries
from .host_libraries import (
    frameworks_library,
    graph_library,
    linked,
    torch_graphs_library,
    torch_host_library,
)

TORCHS_BUILDER = "TORCH_API_INCLUDE_EXTENSION_H"
"""What torch's own builder defines, for torch/torch.h. It hands all files to clang++."""

_CLASS = re.compile(r"OBJC_(?:META)?CLASS_\$_(\w+)")
# Classes of MPS, and what torch declares for them.
_OF_GRAPHS = re.compile(r"OBJC_CLASS_\$_MPS|_ZNK?2at(?:6native)?3mps")
# torch is built without ARC: these headers use retain and release, and pass pairs of objects by value, which differs
# under ARC.
_NO_ARC = "ATen/native/mps/"


@dataclass(frozen=True)
class BuiltExtension:
    """A built extension: its library, its name as a python module, and the compiler's warnings."""

    library: Path
    name: str
    warnings: tuple[Diagnostic, ...]


def build_extension(
    name: str,
    sources: Sequence[Path],
    folder: Path,
    *,
    arc: bool | None = None,
    include: Sequence[Path] = (),
    definitions: Sequence[str] = (),
    options: Sequence[str] = (),
    stand_ins: Callable[[Sequence[str], Sequence[Path]], str] = refusing_of_the_host,
) -> BuiltExtension:
    """Compile and link; `load_extension` (loading) loads the result.

    Args:
        name: of the python module that the extension defines (TORCH_EXTENSION_NAME), and of its library.
        sources: `.mm` and `.cpp` files.
        folder: the folder of the library; created if needed.
        arc: automatic reference counting; None for all files that do not include headers of ATen/native/mps.
        include: folders to search first.
        definitions: macros, as `NAME` or `NAME=VALUE`. With TORCHS_BUILDER `.c` files are C++.
        options: more options for clang.
        stand_ins: makes C++ that defines some of the undefined symbols of the sources, or an empty string.

    Raises:
        ExtensionBuildError: a file does not compile or link; it has clang's messages, with file and line.
        ExtensionError: this machine cannot build.
    """
    compiler = host_compiler(torch=True)
    named = (f"TORCH_EXTENSION_NAME={name}", *definitions)
    # Without optimization: compile time matters more, and kernels are optimized anyway.
    flags = ("-O0", *options)
    as_c = {path for path in sources if path.suffix == ".c" and TORCHS_BUILDER not in definitions}
    units = [Unit(path, _arc(path, arc), tuple(include), named, flags, path in as_c) for path in sources]
    libraries = (frameworks_library(), torch_host_library())
    with tempfile.TemporaryDirectory(prefix="mpsmith-build-") as temporary:
        objects = [Path(temporary) / f"{number}-{path.stem}.o" for number, path in enumerate(sources)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            warnings = [d for diagnostics in threads.map(compiler.compile, units, objects) for d in diagnostics]
        noted = note.write(Path(temporary), name)
        objects.append(Path(temporary) / "note.o")
        compiler.compile(Unit(noted), objects[-1])
        folder.mkdir(parents=True, exist_ok=True)
        built = Path(temporary) / "extension.so"
        words = [*(word for library in libraries for word in linked(library)), *torch_libraries()]
        undefined = link(objects, built, words)
        if any(_OF_GRAPHS.match(symbol) for symbol in undefined):
            words = [*(word for path in (torch_graphs_library(), graph_library()) for word in linked(path)), *words]
            undefined = link(objects, built, words)
        if undefined and (defining := stand_ins(undefined, sources)):
            (Path(temporary) / "stand_ins.cpp").write_text(defining)
            objects.append(Path(temporary) / "stand_ins.o")
            compiler.compile(Unit(Path(temporary) / "stand_ins.cpp"), objects[-1])
            undefined = link(objects, built, words)
        _refuse_undefined(undefined)
        library = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        waiting = library.with_suffix(".new")
        waiting.write_bytes(built.read_bytes())
        waiting.replace(library)
    return BuiltExtension(library, name, tuple(warnings))


def _arc(path: Path, asked: bool | None) -> bool:
    return asked if asked is not None else _NO_ARC not in path.read_text("utf-8", "replace")


def _refuse_undefined(symbols: Sequence[str]) -> None:
    """Raise if symbols other than Python's are undefined; the process that loads the extension has those."""
    missing = [symbol for symbol in symbols if not symbol.startswith(("Py", "_Py"))]
    classes = sorted({match[1] for symbol in missing if (match := _CLASS.fullmatch(symbol))})
    if classes:
        raise ExtensionBuildError(f"the simulated Metal host has no class {', '.join(classes)}")
    if missing:
        shown = ", ".join(demangled(missing[:3]))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ExtensionBuildError(
            f"undefined: {shown}{more}; no library of torch or of the simulated Metal host has it"
        )
