"""Checks whether the kernels of a Metal library would run here: the container, the arguments and the operations."""

from __future__ import annotations

from pathlib import Path

from ..clang import Diagnostic
from ..clang.diagnostics import Severity
from ..errors import AirError, MalformedLibraryError, OtherPlatformError
from .bitcode import declared_functions
from .container import KERNEL, LibraryFile, LibraryFunction
from .intrinsics import implements
from .library import AirLibrary

_NOT_SUPPORTED = "not-supported"


def check_library(path: Path) -> list[Diagnostic]:
    """The problem of a `.metallib`: an error if it is damaged or none of its kernels runs, else a warning."""
    try:
        file, library = LibraryFile(path), AirLibrary(path)
        limits = {function.name: why for function in file.functions if (why := _limit(function, file, library))}
    except AirError as error:
        said = str(error).removeprefix(f"{path}: ")
        severity: Severity = "note" if isinstance(error, OtherPlatformError) else "error"
        return [Diagnostic(str(path), 0, 0, severity, said, "metallib")]
    if not limits:
        return []
    name, why = next(iter(limits.items()))
    said = f"the simulator does not support {len(limits)} of its {len(file.names)} functions, such as {name}: {why}"
    return [Diagnostic(str(path), 0, 0, "warning" if len(limits) < len(file.names) else "error", said, _NOT_SUPPORTED)]


def _limit(function: LibraryFunction, file: LibraryFile, library: AirLibrary) -> str:
    if function.kind != KERNEL:
        return "it is not a compute kernel"
    try:
        library.signature(function.name)
        unknown = [name for name in declared_functions(file.bitcode(function.name)) if not implements(name)]
    except MalformedLibraryError:
        raise
    except AirError as error:
        return str(error)
    return f"it needs {unknown[0]}" if unknown else ""
