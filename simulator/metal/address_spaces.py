"""The strict check of address spaces, which do not exist when a program runs on the host.

It compiles the program as C++ for OpenCL, which has address spaces, and reports conflicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..clang import Diagnostic
from .apple_rules import RULE, refused_by_header
from .attributes import cut_attributes
from .compiler import MetalCompiler
from .declarations import ADDRESS_SPACES, DeclarationWalk, Function
from .diagnostics import parse_clang
from .includes import ProgramSource
from .problems import Problems
from .rewriter import rewrite
from .tokens import Tokens, UnbalancedError

_REAL_SPACE = re.compile(r"__(global_device|global_host|global|local|private)\b")
_VARIABLE_ITSELF = re.compile(r"\*\s*__private\b")  # a pointer variable is in thread memory, whatever it points to
_SPACE_WORDS = (
    (re.compile(r"\b__global_device\b"), "device"),
    (re.compile(r"\b__global(?:_host)?\b"), "constant"),
    (re.compile(r"\b__local\b"), "threadgroup"),
    (re.compile(r" ?\*__private\b"), "*"),
    (re.compile(r"\b__private\b"), "thread"),
    (re.compile(r"\bthreadgroup msl_shared_\w+' \(aka '([^']*)'\)"), r"\1'"),
)
# Two pointers conflict. A value is loaded from its address space, also one of a class (MLX's scan.h chooses between a
# complex number in device memory and one in thread memory).
_OPERANDS = re.compile(
    r"(?:invalid operands to binary expression|incompatible operand types)"
    r" \('([^']*)'(?: \(aka '[^']*'\))? and '([^']*)'"
)
_NEEDED = "needs an address space: device, constant, threadgroup or thread"
_POINTERS = frozenset({"*", "&", "&&"})
# Begins of statements that declare nothing, and types whose address space is deduced.
_NO_DECLARATION = frozenset(["return", "else", "case", "goto", "using", "typedef", "delete", "throw", "do"])
_DEDUCED = frozenset({"auto", "decltype"})
_CONSTANT_PARAMETER = re.compile(r"\bconstant\b[^;{}()=]*[*&]")


def check_address_spaces(
    expanded: str, program: ProgramSource, compiler: MetalCompiler, name: str
) -> Iterator[Diagnostic]:
    """The errors about address spaces in a preprocessed program; `name` is its file."""
    yield from _unqualified_pointers(expanded, name)
    rewritten = rewrite(expanded, "strict").full
    for diagnostic in parse_clang(compiler.check(rewritten, "strict"), program.lines):
        if diagnostic.severity != "error":
            continue
        if message := refused_by_header(diagnostic.message):
            yield replace(diagnostic, message=message, rule=RULE)
        elif len(_spaces(diagnostic)) > 1:
            yield _in_words_of_metal(diagnostic)
    if not _CONSTANT_PARAMETER.search(expanded):
        return
    for diagnostic in parse_clang(compiler.check(rewritten, "strict_constant"), program.lines):
        if diagnostic.severity == "error" and {"global_device", "global_host"} <= _spaces(diagnostic):
            yield _in_words_of_metal(diagnostic)


def _spaces(diagnostic: Diagnostic) -> set[str]:
    """The address spaces that conflict in a message of clang.

    C++ for OpenCL has different rules, but its errors about two different address spaces apply to Metal, too.
    """
    text = _VARIABLE_ITSELF.sub("*", diagnostic.message)
    operands = _OPERANDS.search(text)
    if "__generic" in text or (operands and not all("*" in side for side in operands.groups())):
        return set()
    return set(_REAL_SPACE.findall(text))


def _in_words_of_metal(diagnostic: Diagnostic) -> Diagnostic:
    text = diagnostic.message
    for pattern, word in _SPACE_WORDS:
        text = pattern.sub(word, text)
    return replace(diagnostic, message=text, rule="address-space")


def _unqualified_pointers(expanded: str, name: str) -> Iterator[Diagnostic]:
    """Parameters, variables and casts with a pointer or reference that names no address space, which Apple rejects."""
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
            spaces = sum(word in ADDRESS_SPACES for word in words)
            if not spaces and not _POINTERS.isdisjoint(depth_free):
                message = f"parameter '{tokens.span(begin, end)}' of '{function.name}' {_NEEDED} (slang issue 4129)"
                problems.add(begin, "address-space", message)
            elif function.is_kernel and depth_free.count("*") > spaces:  # the pointer itself would be in thread memory
                message = (
                    f"parameter '{tokens.span(begin, end)}' of kernel '{function.name}' {_NEEDED} for each pointer"
                )
                problems.add(begin, "address-space", f"{message} (MSL specification, Address Spaces)")
        for begin, end in _unqualified_in_body(tokens, function):
            message = f"'{tokens.span(begin, end)}' {_NEEDED} (slang issue 4129; hashcat pull request 4237)"
            problems.add(begin, "address-space", message)
    yield from (d for d in problems.diagnostics() if d.file == name)


def _unqualified_in_body(tokens: Tokens, function: Function) -> Iterator[tuple[int, int]]:
    """The types of variables and casts that are pointers without an address space."""
    text = tokens.text
    for i in range(function.body_begin + 1, function.body_end):
        if text[i - 1] in (";", "{", "}") and text[i] not in _NO_DECLARATION:
            end = _pointer_type(tokens, i)
            if end and text[end].isidentifier() and text[end + 1] in ("=", ";", ","):
                yield i, end
        elif text[i - 1] == "(" and text[i - 2] != "sizeof":
            end = _pointer_type(tokens, i)
            if end and text[end] == ")" and (text[end + 1].isidentifier() or text[end + 1] in ("(", "&")):
                yield i, end


def _pointer_type(tokens: Tokens, begin: int) -> int:
    """The end of a pointer or reference type without an address space that begins here; 0 if there is none."""
    text, i = tokens.text, begin
    while text[i].isidentifier() or text[i] in ("::", "<"):
        if text[i] in ADDRESS_SPACES or text[i] in _DEDUCED:
            return 0
        i = (tokens.close_angle(i) or -1) + 1 if text[i] == "<" else i + 1
        if not i:
            return 0
    if i == begin or text[i] not in _POINTERS:
        return 0
    while text[i] in _POINTERS or text[i] in ("const", "volatile"):
        i += 1
    return i


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
