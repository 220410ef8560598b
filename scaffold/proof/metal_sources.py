"""Metal source in files and inside C++ string literals, handed to the shader checker of the simulator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...simulator.clang import CompilerMissingError, Diagnostic
from ...simulator.metal import METAL_VERSIONS, MetalSyntaxError, MetalVersion, check, check_key
from ...simulator.metal import compile as compile_metal
from ..errors import ScaffoldError

METAL = (".metal",)
COMPILED_METAL = (".metallib",)
# The rule of the note that stands where there is no shader checker.
UNCHECKED = "metal: not checked"

_RAW_STRING = re.compile(r'R"(?P<mark>\w*)\((?P<body>.*?)\)(?P=mark)"', re.DOTALL)
_IS_METAL = re.compile(r"\bkernel\s+void\b|#include\s*<metal_stdlib>")


def metal_programs(path: Path, text: str) -> list[str]:
    """The Metal programs of a file: its text, or its raw string literals where it is C++.

    Includes of `mpsmith.kernels` in a `.metal` file are expanded. A literal is padded with line breaks to keep its
    line numbers.
    """
    if path.suffix not in METAL:
        return [
            "\n" * text.count("\n", 0, literal.start("body")) + literal["body"]
            for literal in _RAW_STRING.finditer(text)
            if _IS_METAL.search(literal["body"])
        ]
    if '#include "shared/' in text:
        from ...kernels.runtime.shader import assembled

        return [assembled(path)]
    return [text]


def metal_version(text: str) -> MetalVersion:
    """The version of Metal that the user names. Raises ScaffoldError if torch compiles with no such version."""
    for version in METAL_VERSIONS:
        if text == version:
            return version
    raise ScaffoldError(f"--metal {text}: give one of {', '.join(METAL_VERSIONS)}, with which torch compiles")


def check_metal(path: Path, programs: Iterable[str], metal: MetalVersion) -> list[Diagnostic]:
    """What is wrong with the programs of a file, at its lines; a note where there is no compiler to say so."""
    try:
        return [_of_metal(d) for program in programs for d in check(program, path, strict=True, metal=metal)]
    except CompilerMissingError as error:
        return [Diagnostic(str(path), 0, 0, "note", f"the Metal source was not checked: {error}", UNCHECKED)]


def kernel_names(program: str, path: Path) -> frozenset[str]:
    """The kernels that a program can be asked for; none where it does not compile, which is said elsewhere.

    Raises CompilerMissingError where there is no compiler.
    """
    try:
        return frozenset(dir(compile_metal(program, filename=path)))
    except MetalSyntaxError:
        return frozenset()


def metal_keys(path: Path, programs: Iterable[str], metal: MetalVersion) -> list[str]:
    """What the findings about these programs hang on."""
    try:
        return [check_key(program, path, strict=True, metal=metal) for program in programs]
    except CompilerMissingError:
        return [UNCHECKED]


def _of_metal(diagnostic: Diagnostic) -> Diagnostic:
    place = diagnostic.file, diagnostic.line, diagnostic.column
    return Diagnostic(*place, diagnostic.severity, diagnostic.message, f"metal: {diagnostic.rule}")
