"""Classifies a failure: a defect of the project, or a limit of mpsmith."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ...errors import one_line
from ...simulator.clang import Diagnostic
from ...simulator.objc.compiler import ExtensionBuildError
from ...simulator.opening import SIMULATOR_LIMITS
from .results import TryResult, TryRow
from .worker import TestEnd

# The rule of a Metal function or header that mpsmith does not run.
_NOT_SUPPORTED = "not-supported"
# Names of Apple's frameworks: where clang knows none such, mpsmith's declarations lack it.
_PREFIXES = r"NS|MTL|MPS|k?CF|k?IO[A-Z]|dispatch_|DISPATCH_|QOS_|os_|objc_|OS"
_OF_APPLE = re.compile(rf"'(?:[^' ]* )?-?\[?(?:{_PREFIXES})\w*|\bvDSP_|\bcblas_")
_METHOD = re.compile(r"no (?:known|visible) .*(?:method|@interface)|(?:method|property) '.*' not found")
_FRAMEWORKS = r"Foundation|Core\w+|IOSurface|Metal\w*|Accelerate|AppKit|QuartzCore|IOKit|mach|mach-o|dispatch|os|simd"
_HEADER = re.compile(rf"'(?:{_FRAMEWORKS})/.*not found")
# A header of another package, such as nanobind.
_NO_HEADER = re.compile(r"'(?!torch/|ATen/|c10/)(?P<name>[\w.-]+)/[^']*' file not found")
# A name that lines before the first of the file would declare.
_UNDECLARED = re.compile(
    r"undeclared identifier|unknown type name|expected namespace name|no (?:member|template) named"
)
# Python's str.format doubles the braces of its templates.
_TEMPLATE = re.compile(r"(?:\bstruct \w+|\))\s*\{\{\s*$", re.MULTILINE)
_MPSMITH = ("simulated", "mpsmith", "MPSGraph")
# A kernel or its launch did something invalid.
_OF_A_KERNEL = {"MetalRuntimeError", "MetalValueError", "KernelFault", "MetalSyntaxError"}
# The same, raised by an extension: its exceptions have no class of ours.
_BY_AN_EXTENSION = ("simulated Metal kernel '", "Metal, simulated: ")
# An operator or dtype that PyTorch's mps backend lacks.
_LACKING_ON_A_MAC = ("is not currently implemented for the MPS device", "MPS framework doesn't support float64")
_LIMITS = (
    "does not support",
    "the simulated Metal host has no such method",
    " is not simulated: ",
    "not supported by the simulator",
    *SIMULATOR_LIMITS,
)
# Fixtures of pytest's plugins.
_PLUGINS = {"benchmark": "pytest-benchmark", "mocker": "pytest-mock"}
_PLACE = re.compile(r"(?P<file>[^\s:'\"]+\.(?:metal|mm|py|h)|program_source):(?P<line>\d+)")
_NO_MODULE = re.compile(r"No module named '(?P<name>(?P<top>\w+)[\w.]*)")
_NO_NAME = re.compile(
    r"cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<package>[\w.]+)'"
)


def diagnostic_row(kind: str, name: str, diagnostic: Diagnostic) -> TryRow:
    """The row of a file with this error."""
    absent = _NO_HEADER.search(diagnostic.message)
    if absent and kind != "metal" and not _HEADER.search(diagnostic.message):
        reason = f"it needs the headers of {absent['name']}: install it"
        return TryRow(kind, name, TryResult.SKIPPED, reason, diagnostic.file, diagnostic.line)
    limit = diagnostic.rule.endswith(_NOT_SUPPORTED) or _is_limit(diagnostic.message)
    result = TryResult.REFUSED if limit else TryResult.DEFECT
    return TryRow(kind, name, result, one_line(diagnostic.message), diagnostic.file, diagnostic.line)


def joined_row(row: TryRow, reader: str, source: str) -> TryRow:
    """The row of a Metal file that the file `reader` names, which may add other source before it compiles it.

    `source`: the text of the Metal file; it may be a template that Python fills in.
    """
    if row.result is TryResult.DEFECT and reader.endswith(".py") and _TEMPLATE.search(source):
        return replace(row, result=TryResult.SKIPPED, reason=f"it is a template: {reader} may fill it in")
    if row.result is not TryResult.DEFECT or not _UNDECLARED.search(row.reason):
        return row
    return replace(row, result=TryResult.SKIPPED, reason=f"{row.reason}: {reader} may compile it with other source")


def build_rows(name: str, error: Exception) -> Iterable[TryRow]:
    """The rows of an extension that does not build: one for each file with an error."""
    errors = [d for d in getattr(error, "diagnostics", ()) if d.severity == "error"]
    if not errors:
        lacks = not isinstance(error, ExtensionBuildError) or _is_limit(str(error)) or "undefined: " in str(error)
        return [TryRow("extension", name, TryResult.REFUSED if lacks else TryResult.DEFECT, one_line(error))]
    files = dict.fromkeys(d.file for d in errors)
    return [diagnostic_row("extension", name, _first([d for d in errors if d.file == file])) for file in files]


def script_row(name: str, problem: str, has_host_code: bool) -> TryRow:
    """The row of a build script that fails; skipped if the project has no host code for mps."""
    if missing := _NO_MODULE.search(problem):
        return TryRow("extension", name, TryResult.SKIPPED, f"it needs the module {missing['top']}: install it", name)
    return TryRow("extension", name, TryResult.DEFECT if has_host_code else TryResult.SKIPPED, problem, name)


def _first(errors: Sequence[Diagnostic]) -> Diagnostic:
    """The first error that is a limit of mpsmith, because others may follow from it; else the first error."""
    return next((d for d in errors if diagnostic_row("", "", d).result is TryResult.REFUSED), errors[0])


def test_row(end: TestEnd, own: frozenset[str], extensions: Collection[str]) -> TryRow:
    """The row of a test. `own`: the modules of the project; any other missing module is a dependency.

    `extensions`: those that the project's build requests.
    """
    if end.outcome == "passed":
        return TryRow("test", end.test, TryResult.RIGHT)
    text = one_line(end.text)
    if end.outcome == "skipped":
        return TryRow("test", end.test, TryResult.SKIPPED, text)
    if end.outcome == "hung":
        return TryRow("test", end.test, TryResult.WRONG, f"it did not end within {end.text}")
    if end.outcome == "died":
        result = TryResult.DEFECT if end.ours else _failure(end)  # ours: the host followed an address of the device
        return TryRow("test", end.test, result, f"the process died of {end.text}")
    if end.diagnostics:
        diagnostic = _first([Diagnostic(**fields) for fields in end.diagnostics])
        return replace(
            diagnostic_row("test", end.test, diagnostic), reason=f"an extension does not build: {diagnostic.message}"
        )
    if "FixtureLookupError" in end.kinds:
        if plugin := next((name for fixture, name in _PLUGINS.items() if f"'{fixture}'" in end.text), ""):
            return TryRow("test", end.test, TryResult.SKIPPED, f"it needs the module {plugin}: install it")
        return TryRow("test", end.test, TryResult.DEFECT, "pytest has no fixture for one of its arguments")
    missing, absent = _NO_MODULE.search(end.text), _NO_NAME.search(end.text)
    wanted = f"{absent['package']}.{absent['name']}" if absent else missing["name"] if missing else ""
    if wanted in extensions:
        return TryRow("test", end.test, TryResult.SKIPPED, f"it needs the extension {wanted}, see above")
    if missing and missing["top"] not in own:
        return TryRow("test", end.test, TryResult.SKIPPED, f"it needs the module {missing['top']}: install it")
    place = next(reversed(list(_PLACE.finditer(end.text))), None)  # the last is the innermost
    file, line = (place["file"], int(place["line"])) if place else ("", 0)
    return TryRow("test", end.test, _failure(end), _with_class(end, text), file, line)


def _failure(end: TestEnd) -> TryResult:
    if any(limit in end.text for limit in _LIMITS):
        return TryResult.REFUSED
    if any(said in end.text for said in _BY_AN_EXTENSION):
        return TryResult.DEFECT
    if end.ours:
        return TryResult.DEFECT if _OF_A_KERNEL.intersection(end.kinds) else TryResult.REFUSED
    if any(text in end.text for text in _LACKING_ON_A_MAC):
        return TryResult.DEFECT
    return TryResult.WRONG


def _with_class(end: TestEnd, text: str) -> str:
    kind = end.kinds[0] if end.kinds else ""
    return text if end.ours or kind in ("", "AssertionError") else f"{kind}: {text}"


def _is_limit(message: str) -> bool:
    """Whether a compiler's message is about something that mpsmith's own headers and libraries lack."""
    return bool(
        _OF_APPLE.search(message)
        or _METHOD.search(message)
        or _HEADER.search(message)
        or any(word in message for word in _MPSMITH)
    )
