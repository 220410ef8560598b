"""Builds an extension: `.mm` and `.cpp` files to a shared library for the simulated mps device of this machine."""

from __future__ import annotations

import re
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..clang import Diagnostic
from . import note
from .compiler import Unit, demangled, host_compiler, link, torch_libraries
from .errors import ExtensionBuildError
from .host_libraries import frameworks_library, linked, torch_host_library

_SELECTOR = re.compile(r"@selector\(\s*([\w:]+)\s*\)")
_CLASS = re.compile(r"OBJC_(?:META)?CLASS_\$_(\w+)")
# torch is built without ARC: these headers use retain and release, and their classes pass pairs of objects by value,
# which ARC does in another way.
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
    stand_ins: Callable[[Sequence[str]], str] | None = None,
) -> BuiltExtension:
    """Compiles and links; `load_extension` (loading) loads the result.

    Args:
        name: of the python module that the extension defines (TORCH_EXTENSION_NAME), and of its library.
        sources: `.mm` and `.cpp` files.
        folder: where the library goes; it is made where it is not there.
        arc: automatic reference counting; None decides by file: not where it includes headers of ATen/native/mps.
        include: folders that are searched before all others.
        definitions: macros, as `NAME` or `NAME=VALUE`.
        options: more options for clang.
        stand_ins: from undefined symbols, C++ that defines some of them; empty for none.

    Raises:
        ExtensionBuildError: a file does not compile or link; it has clang's messages, with file and line.
        ExtensionError: this machine lacks what a build needs.
    """
    compiler = host_compiler(torch=True)
    named = (f"TORCH_EXTENSION_NAME={name}", *definitions)
    # Not optimised: it is compiled more often than it waits for its own code, and the kernels are optimised anyway.
    units = [Unit(path, _arc(path, arc), tuple(include), named, ("-O0", *options)) for path in sources]
    libraries = (frameworks_library(), torch_host_library())
    with tempfile.TemporaryDirectory(prefix="mpsmith-build-") as temporary:
        objects = [Path(temporary) / f"{number}-{path.stem}.o" for number, path in enumerate(sources)]
        with ThreadPoolExecutor() as threads:
            warnings = [d for found in threads.map(compiler.compile, units, objects) for d in found]
        noted = note.write(Path(temporary), name, _asked_for(sources))
        objects.append(Path(temporary) / "note.o")
        compiler.compile(Unit(noted), objects[-1])
        folder.mkdir(parents=True, exist_ok=True)
        built = Path(temporary) / "extension.so"
        words = [*(word for library in libraries for word in linked(library)), *torch_libraries()]
        undefined = link(objects, built, words)
        if undefined and stand_ins and (defining := stand_ins(undefined)):
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


def _asked_for(sources: Sequence[Path]) -> list[str]:
    """Selectors that the sources ask for by name, as in `respondsToSelector:`: they need not be there."""
    return sorted({name for path in sources for name in _SELECTOR.findall(path.read_text("utf-8", "replace"))})


def _refuse_undefined(symbols: Sequence[str]) -> None:
    """Raises for what no library has; the symbols of python are found in the process that loads the extension."""
    missing = [symbol for symbol in symbols if not symbol.startswith(("Py", "_Py"))]
    classes = sorted({found[1] for symbol in missing if (found := _CLASS.fullmatch(symbol))})
    graph = [name for name in classes if name.startswith("MPSGraph")]
    if graph:
        raise ExtensionBuildError(
            f"it needs MPSGraph ({', '.join(graph)}), which is Apple's and closed: nothing here can run it; "
            "a kernel in Metal can be run"
        )
    if classes:
        raise ExtensionBuildError(f"the simulated Metal host has no class {', '.join(classes)}")
    if missing:
        shown = ", ".join(demangled(missing[:3]))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ExtensionBuildError(
            f"undefined: {shown}{more}; no library of torch or of the simulated Metal host has it"
        )
