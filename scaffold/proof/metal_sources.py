"""Metal source in files and inside C++ string literals, handed to the shader checker of the simulator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...simulator.metal import CompilerMissingError
from ...simulator.metal import check as check_shader
from .findings import Finding

_RAW_STRING = re.compile(r'R"(?P<mark>\w*)\((?P<body>.*?)\)(?P=mark)"', re.DOTALL)
# The rule of the note that stands where there is no shader checker.
UNCHECKED = "metal: not checked"

_IS_METAL = re.compile(r"\bkernel\s+void\b|#include\s*<metal_stdlib>")


def check_metal_file(path: Path, text: str) -> list[Finding]:
    """Findings about a `.metal` file; what it includes of `mpsmith.kernels` is put in its place."""
    if '#include "shared/' in text:
        from ...kernels.runtime.shader import assembled

        text = assembled(path)
    return _checked(path, text)


def check_metal_strings(path: Path, programs: Iterable[str]) -> list[Finding]:
    """Findings about the Metal programs that `metal_strings` found in a C++ file, at the lines of that file."""
    return [finding for program in programs for finding in _checked(path, program)]


def metal_strings(text: str) -> Iterator[str]:
    """The Metal programs in raw string literals, each behind as many line breaks as stand before it."""
    for found in _RAW_STRING.finditer(text):
        if _IS_METAL.search(found["body"]):
            yield "\n" * text.count("\n", 0, found.start("body")) + found["body"]


def _checked(path: Path, source: str) -> list[Finding]:
    try:
        diagnostics = check_shader(source, path)
    except CompilerMissingError as error:
        return [Finding(str(path), 0, 0, "note", f"the Metal source was not checked: {error}", UNCHECKED)]
    return [Finding(d.file, d.line, d.column, d.severity, d.message, f"metal: {d.rule}") for d in diagnostics]
