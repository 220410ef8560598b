"""Whether the kernels of a Metal library would run here: its container, their arguments, the operations they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..clang import Diagnostic
from ..clang.diagnostics import Severity
from ..errors import AirError, MalformedLibraryError, OtherPlatformError
from .bitcode import declared_functions
from .container import KERNEL, LibraryFile
from .intrinsics import implements
from .library import AirLibrary

NOT_SUPPORTED, DAMAGED = "not-supported", "metallib"


def check_library(path: Path) -> list[Diagnostic]:
    """What is wrong with a `.metallib`: an error where it is damaged or none of its kernels runs, else a warning."""
    try:
        library, file = AirLibrary(path), LibraryFile(path)
    except OtherPlatformError as error:
        return [_about(path, "note", str(error), NOT_SUPPORTED)]
    except AirError as error:
        return [_about(path, "error", str(error), DAMAGED)]
    limits: dict[str, str] = {}
    for function in file.functions:
        if function.kind != KERNEL:
            limits[function.name] = "it is not a compute kernel"
            continue
        try:
            code = file.bitcode(function.name)
            library.signature(function.name)
            unknown = [name for name in declared_functions(code) if not implements(name)]
        except MalformedLibraryError as error:
            return [_about(path, "error", str(error), DAMAGED)]
        except AirError as error:
            limits[function.name] = str(error)
            continue
        if unknown:
            limits[function.name] = f"it needs {unknown[0]}"
    return list(_findings(path, limits, len(file.names)))


def _findings(path: Path, limits: dict[str, str], kernels: int) -> Iterator[Diagnostic]:
    if limits:
        name, reason = next(iter(limits.items()))
        severity: Severity = "error" if len(limits) == kernels else "warning"
        said = f"the simulator does not support {len(limits)} of its {kernels} functions, such as {name}: {reason}"
        yield _about(path, severity, said, NOT_SUPPORTED)


def _about(path: Path, severity: Severity, message: str, rule: str) -> Diagnostic:
    return Diagnostic(str(path), 0, 0, severity, message.removeprefix(f"{path}: "), rule)
