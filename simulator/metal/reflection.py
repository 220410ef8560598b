"""The buffer parameters of each kernel of a program, read from the source without compiling it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .attributes import cut_attributes
from .compiler import default_compiler
from .declarations import DeclarationWalk, Function
from .entries import EntryPoint, kernel_entries
from .includes import PROGRAM, include_folders, with_includes
from .problems import Problems
from .tokens import Tokens, UnbalancedError


@dataclass(frozen=True)
class ReflectedBuffer:
    """A buffer parameter: `declaration` is its type in the source, such as `device const T*`."""

    index: int
    name: str
    declaration: str


@dataclass(frozen=True)
class ReflectedKernel:
    """A callable kernel: its function and its buffers by index."""

    name: str
    function: str
    buffers: tuple[ReflectedBuffer, ...]


def reflect(source: str, filename: str | Path | None = None) -> dict[str, ReflectedKernel]:
    """The kernels of a Metal program by name, after macro expansion; none if preprocessing fails.

    Raises:
        CompilerMissingError: there is no compiler on this machine.
    """
    folders = include_folders(filename)
    expanded, _ = default_compiler().preprocess(with_includes(source, str(filename or PROGRAM), folders))
    try:
        tokens, attributes = cut_attributes(Tokens.of(expanded))
    except UnbalancedError:
        return {}
    program = DeclarationWalk(tokens, attributes, drop_duplicates=True).program
    functions: dict[str, list[Function]] = {}
    for function in program.functions:
        functions.setdefault(function.name, []).append(function)
    entries = kernel_entries(tokens, program, Problems(tokens))
    return {entry.name: _reflected(entry, functions, tokens) for entry in entries}


def _reflected(entry: EntryPoint, functions: Mapping[str, list[Function]], tokens: Tokens) -> ReflectedKernel:
    name = re.sub(r"<.*", "", entry.function, flags=re.DOTALL).rpartition("::")[2].strip()
    names = [argument.name for argument in entry.arguments]
    (declared, *_) = [f for f in functions[name] if [p.name for p in f.parameters] == names] or functions[name]
    written = {p.name: tokens.span(p.begin, p.end) for p in declared.parameters}
    buffers = [
        ReflectedBuffer(argument.index, argument.name, _without_name(written.get(argument.name, ""), argument.name))
        for argument in entry.arguments
        if argument.kind == "buffer"
    ]
    return ReflectedKernel(entry.name, name, tuple(sorted(buffers, key=lambda buffer: buffer.index)))


def _without_name(declaration: str, name: str) -> str:
    return " ".join(re.sub(rf"\b{re.escape(name)}\s*$", "", declaration.strip()).split())
