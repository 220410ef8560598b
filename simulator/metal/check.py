"""Checks Metal source without running it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ...cache import fingerprint
from ...metal_limits import MAX_THREADGROUP_MEMORY
from ..clang import Diagnostic
from .attributes import cut_attributes
from .compiler import MetalCompiler, default_compiler
from .declarations import ADDRESS_SPACES, DeclarationWalk
from .diagnostics import parse_clang
from .includes import PROGRAM, ProgramSource, include_folders, with_includes
from .problems import Problems
from .rewriter import rewrite
from .tokens import Tokens, UnbalancedError
from .translation import check_host

_WARNINGS = (
    *("-Wpre-c++17-compat", "-Wuninitialized", "-Wreturn-type", "-Wdivision-by-zero", "-Wshift-count-overflow"),
    *("-Wshift-count-negative", "-Warray-bounds", "-Wtautological-compare", "-Wparentheses", "-Wself-assign"),
)
_REAL_SPACE = re.compile(r"__(global_device|global|local|private)\b")
_VARIABLE_ITSELF = re.compile(r"\*\s*__private\b")  # a pointer variable is in thread memory, whatever it points to
_SPACE_WORDS = (
    (re.compile(r"\b__global_device\b"), "device"),
    (re.compile(r"\b__global\b"), "constant"),
    (re.compile(r"\b__local\b"), "threadgroup"),
    (re.compile(r" ?\*__private\b"), "*"),
    (re.compile(r"\b__private\b"), "thread"),
    (re.compile(r"\bthreadgroup msl_shared_\w+' \(aka '([^']*)'\)"), r"\1'"),
)
# Vectors and matrices are values in Metal, and classes in our headers: either operand is loaded from its address space.
_VALUE = r"'[^'*&]*\b(?:vec|matrix)<[^'*&]*'"
_VALUE_OPERANDS = re.compile(rf"incompatible operand types \({_VALUE} and {_VALUE}")
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
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> list[Diagnostic]:
    """The diagnostics of a Metal program, in the order of its lines.

    Args:
        source: the program.
        filename: the file of the program, for messages and `#include`.
        strict: also compile it with real address spaces; each pointer must name its own.
        include: more folders for `#include`.
        defines: macros, as `NAME` or `NAME=VALUE`.

    Raises:
        CompilerMissingError: there is no compiler on this machine.
    """
    compiler = default_compiler()
    name = str(filename) if filename else PROGRAM
    program = with_includes(source, name, include_folders(filename, include), defines)
    key = _key(program, strict, compiler)
    kept = compiler.cache.find(key, ".json")
    if kept:
        return [Diagnostic(**d) for d in json.loads(kept[1])]
    rewritten, found = check_host(program, compiler, _WARNINGS, _ASSERTIONS)
    diagnostics = [_renamed(d) for d in found if d.severity == "error" or d.file == name]
    if strict and rewritten is not None:
        diagnostics += _check_address_spaces(program, compiler, name)
    ordered = sorted(dict.fromkeys(diagnostics), key=lambda d: (d.file != name, d.file, d.line, d.column))
    compiler.cache.store(key, ".json", json.dumps([asdict(d) for d in ordered]).encode())
    return ordered


def check_key(source: str, filename: str | Path | None = None, *, strict: bool = False) -> str:
    """The cache key of `check`: it depends on the program with its includes, the compiler and this code.

    Raises:
        CompilerMissingError: there is no compiler on this machine.
    """
    program = with_includes(source, str(filename) if filename else PROGRAM, include_folders(filename))
    return _key(program, strict, default_compiler())


def _key(program: ProgramSource, strict: bool, compiler: MetalCompiler) -> str:
    return fingerprint(compiler.identity, "check", str(strict), program.identity)


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
    if diagnostic.rule != "pre-c++17-compat":
        return diagnostic
    feature = diagnostic.message.split(" is incompatible")[0].split(" are incompatible")[0]
    return replace(diagnostic, rule="c++14", message=f"{feature}: Metal before version 4 is C++14")


def _check_address_spaces(program: ProgramSource, compiler: MetalCompiler, name: str) -> Iterator[Diagnostic]:
    expanded, _ = compiler.preprocess(program)
    yield from _unqualified_pointers(expanded, name)
    messages = compiler.check(rewrite(expanded, "strict").full, "strict")
    for diagnostic in parse_clang(messages, program.lines):
        text = diagnostic.message
        # C++ for OpenCL has other rules, but its errors about two different address spaces apply to Metal, too.
        spaces = set(_REAL_SPACE.findall(_VARIABLE_ITSELF.sub("*", text)))
        if _VALUE_OPERANDS.search(text):
            continue
        if diagnostic.severity == "error" and len(spaces) > 1 and "__generic" not in text:
            for pattern, word in _SPACE_WORDS:
                text = pattern.sub(word, text)
            yield replace(diagnostic, message=text, rule="address-space")


def _unqualified_pointers(expanded: str, name: str) -> Iterator[Diagnostic]:
    """Parameters that are pointers or references without an address space, which Apple's compiler rejects."""
    tokens = Tokens.of(expanded)
    try:
        tokens, attributes = cut_attributes(tokens)
    except UnbalancedError:
        return
    problems = Problems(tokens)
    walk = DeclarationWalk(tokens, attributes, drop_duplicates=False)
    for function in walk.program.functions:
        for begin, end in walk.split(function.parameters_begin):
            words = tokens.text[begin:end]
            depth_free = [w for i, w in enumerate(words, begin) if not _inside_brackets(tokens, begin, i)]
            if ("*" in depth_free or "&" in depth_free) and not ADDRESS_SPACES & set(words):
                problems.add(
                    begin,
                    "address-space",
                    f"parameter '{tokens.span(begin, end)}' of '{function.name}' needs an address space: "
                    "device, constant, threadgroup or thread",
                )
    yield from (d for d in problems.diagnostics() if d.file == name)


def _inside_brackets(tokens: Tokens, begin: int, i: int) -> bool:
    """Whether token `i` of a parameter is in brackets or template arguments that open at or after `begin`."""
    j = begin
    while j < i:
        close = tokens.pair.get(j, 0) if tokens.text[j] in ("(", "[", "{") else 0
        if tokens.text[j] == "<":
            close = tokens.close_angle(j) or 0
        if close > i:
            return True
        j = close + 1 if close > j else j + 1
    return False
