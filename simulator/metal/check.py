"""Checks Metal source without running it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ...cache import fingerprint
from ...metal_limits import MAX_THREADGROUP_MEMORY
from ..clang import Diagnostic
from ..clang.diagnostics import COMPILE
from .address_spaces import check_address_spaces
from .apple_rules import RULE, apple_rules, refused_by_header
from .compiler import METAL_VERSIONS, RUN_AS, MetalCompiler, MetalVersion, default_compiler
from .includes import PROGRAM, ProgramSource, with_includes
from .translation import check_expanded, expand

_WARNINGS = (
    *("-Wpre-c++17-compat", "-Wuninitialized", "-Wreturn-type", "-Wdivision-by-zero", "-Wshift-count-overflow"),
    *(
        "-Werror=vla",
        "-Wshift-count-negative",
        "-Warray-bounds",
        "-Wtautological-compare",
        "-Wparentheses",
        "-Wself-assign",
    ),
)
_OLDER = "c++14"
# Clang accepts newer features in C++14 with a warning, but these.
_REFUSED_IN_CPP14 = ("class template argument deduction", "non-type template parameters declared with 'auto'")
_BFLOAT = (
    "bfloat converts implicitly to float only, and float and half do not convert to bfloat"
    " (MSL specification, Scalar Data Types; cubecl issue 1522)"
)
# Where bfloat is a number and not a class, a choice between an integer and a bfloat is a bfloat.
_NO_CLASS = re.compile(r"conditional expression is ambiguous; '[\w ]+' can be converted to '[\w ]+' and vice versa")
_TOO_MUCH = "threadgroup variables that are too large"
_ASSERTIONS = (
    "#undef MSL_SHARED_TOTAL\n"
    f'#define MSL_SHARED_TOTAL(bytes) static_assert((bytes) <= {MAX_THREADGROUP_MEMORY}, "{_TOO_MUCH}")\n'
)
_INSTANTIATION = re.compile(r"in instantiation of function template specialization '([^']*)'")
_TOTAL = re.compile(r"expression evaluates to '(\d+) <= \d+'")


def check(
    source: str,
    filename: str | Path | None = None,
    *,
    strict: bool = False,
    metal: MetalVersion = METAL_VERSIONS[0],
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> list[Diagnostic]:
    """The diagnostics of a Metal program, in the order of its lines.

    Args:
        source: the program.
        filename: the file of the program, for messages and `#include`.
        strict: refuse what Apple's compiler refuses, too: its rules, and real address spaces, which each pointer names.
        metal: the version of the strict check; the default is the lowest that torch compiles with, that of macOS 14.
        include: more folders for `#include`.
        defines: macros, as `NAME` or `NAME=VALUE`.

    Raises:
        CompilerMissingError: there is no compiler on this machine.
    """
    compiler = default_compiler()
    name = str(filename) if filename else PROGRAM
    program = with_includes(source, filename, include, defines)
    version = metal if strict else RUN_AS
    key = _key(program, strict, version, compiler)
    kept = compiler.cache.find(key, ".json")
    if kept:
        return [Diagnostic(**d) for d in json.loads(kept[1])]
    expanded, reported = expand(program, compiler, version)
    if expanded:
        _, reported = check_expanded(expanded, program, compiler, "apple" if strict else "fast", _WARNINGS, _ASSERTIONS)
    if strict:
        reported = [d for d in reported if not ("bfloat'" in d.message and _NO_CLASS.match(d.message))]
    if strict and expanded and any(d.severity == "error" for d in reported):
        reported = _with_reason(reported, check_expanded(expanded, program, compiler)[1])
    diagnostics = [_renamed(d) for d in reported if d.severity == "error" or d.file == name]
    if version >= "4.0":
        diagnostics = [d for d in diagnostics if d.rule != _OLDER]
    elif strict:
        diagnostics = [_refused_in_cpp14(d) for d in diagnostics]
    if strict and expanded:
        diagnostics += apple_rules(expanded, version)
        diagnostics += check_address_spaces(expanded, program, compiler, name)
    ordered = sorted(dict.fromkeys(diagnostics), key=lambda d: (d.file != name, d.file, d.line, d.column))
    compiler.cache.store(key, ".json", json.dumps([asdict(d) for d in ordered]).encode())
    return ordered


def check_key(
    source: str,
    filename: str | Path | None = None,
    *,
    strict: bool = False,
    metal: MetalVersion = METAL_VERSIONS[0],
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> str:
    """The cache key of `check`: it depends on the program with its includes and macros, the compiler and this code.

    Raises:
        CompilerMissingError: there is no compiler on this machine.
    """
    program = with_includes(source, filename, include, defines)
    return _key(program, strict, metal if strict else RUN_AS, default_compiler())


def _key(program: ProgramSource, strict: bool, version: MetalVersion, compiler: MetalCompiler) -> str:
    return fingerprint(compiler.identity, "check", str(strict), version, program.identity)


def _with_reason(strict: Sequence[Diagnostic], on_host: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Add a reason to errors that only the strict check reports: they are due to Apple's type bfloat."""
    places = {(d.file, d.line) for d in on_host if d.severity == "error"}
    return [
        replace(d, message=f"{d.message}; {_BFLOAT}", rule=RULE)
        if d.severity == "error"
        and d.rule == COMPILE
        and not refused_by_header(d.message)
        and (d.file, d.line) not in places
        else d
        for d in strict
    ]


def _refused_in_cpp14(diagnostic: Diagnostic) -> Diagnostic:
    """An error for a feature that Clang does not have in C++14 at all."""
    if diagnostic.rule != _OLDER or not diagnostic.message.startswith(_REFUSED_IN_CPP14):
        return diagnostic
    message = f"{diagnostic.message} (MSL specification, Metal and C++14)"
    return replace(diagnostic, severity="error", rule=RULE, message=message)


def _renamed(diagnostic: Diagnostic) -> Diagnostic:
    """Clang's message with a rule and words that fit Metal."""
    if _TOO_MUCH in diagnostic.message:
        total = _TOTAL.search(diagnostic.message)
        size = f"{total[1]} bytes" if total else "too much"
        message = f"{size} of threadgroup memory; the limit is {MAX_THREADGROUP_MEMORY}"
        instantiation = _INSTANTIATION.search(diagnostic.message)
        kernel = instantiation[1] if instantiation else "this kernel"
        # Apple's compiler accepts it, and refuses to make the kernel's pipeline.
        message += f"; the pipeline of {kernel} cannot be made"
        return replace(diagnostic, severity="warning", rule="too-much-threadgroup-memory", message=message)
    if text := refused_by_header(diagnostic.message):
        return replace(diagnostic, rule=RULE, message=text)
    if diagnostic.rule in ("vla", "vla-cxx-extension"):
        message = "Metal has no arrays of variable length (MoltenVK issue 1106)"
        return replace(diagnostic, rule=RULE, message=message)
    if diagnostic.rule != "pre-c++17-compat":
        return diagnostic
    feature = diagnostic.message.split(" is incompatible")[0].split(" are incompatible")[0]
    return replace(diagnostic, rule=_OLDER, message=f"{feature}: Metal before version 4 is C++14")
