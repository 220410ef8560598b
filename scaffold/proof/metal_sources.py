"""Finds Metal source in files and in C++ string literals, and checks it with the simulator's Metal compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...simulator.clang import CompilerMissingError, Diagnostic
from ...simulator.metal import METAL_VERSIONS, MetalSyntaxError, MetalVersion, check, check_key
from ...simulator.metal import compile as compile_metal
from ...simulator.objc.compile_options import NO_OPTIONS, CompileOptions
from ..errors import ScaffoldError

METAL = (".metal",)
COMPILED_METAL = (".metallib",)
# The rule of the note that says that no compiler is here.
UNCHECKED = "metal: not checked"

_RAW_STRING = re.compile(r'R"(?P<mark>\w*)\((?P<body>.*?)\)(?P=mark)"', re.DOTALL)
_IS_METAL = re.compile(r"\bkernel\s+void\b|#include\s*<metal_stdlib>")


def metal_programs(path: Path, text: str) -> list[str]:
    """The Metal programs of a file: its text, or its raw string literals if it is C++.

    Includes of `mpsmith.kernels` in a `.metal` file are expanded. A literal is padded with line breaks to keep its line
    numbers.
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


def check_metal(
    path: Path, programs: Iterable[str], metal: MetalVersion, options: CompileOptions = NO_OPTIONS
) -> list[Diagnostic]:
    """The compiler's findings in the programs of a file, at its lines; a note if there is no compiler."""
    include, defines = options.include, options.definitions
    try:
        return [
            _of_metal(diagnostic)
            for program in programs
            for diagnostic in check(program, path, strict=True, metal=metal, include=include, defines=defines)
        ]
    except CompilerMissingError as error:
        return [Diagnostic(str(path), 0, 0, "note", f"the Metal source was not checked: {error}", UNCHECKED)]


def kernel_names(program: str, path: Path) -> frozenset[str]:
    """The names of a program's kernels; empty if it does not compile, which `check_metal` reports.

    Raises CompilerMissingError if there is no compiler.
    """
    try:
        return frozenset(dir(compile_metal(program, filename=path)))
    except MetalSyntaxError:
        return frozenset()


def cache_keys(
    path: Path, programs: Iterable[str], metal: MetalVersion, options: CompileOptions = NO_OPTIONS
) -> list[str]:
    """The cache keys of the findings in these programs."""
    include, defines = options.include, options.definitions
    try:
        return [
            check_key(program, path, strict=True, metal=metal, include=include, defines=defines) for program in programs
        ]
    except CompilerMissingError:
        return [UNCHECKED]


def _of_metal(diagnostic: Diagnostic) -> Diagnostic:
    place = diagnostic.file, diagnostic.line, diagnostic.column
    return Diagnostic(*place, diagnostic.severity, diagnostic.message, f"metal: {diagnostic.rule}")
