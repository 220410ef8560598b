"""Launches of host code in upstream's style against the Metal source: the kernel and the bound arguments.

Upstream's files, and those of finished families, launch through their own functions that forward their last
arguments to `mtl_setArgs`. This module reads the calls of such functions and compares each with every kernel that its
name may be: number, order and kind of the buffers. Types that a declaration leaves open are not compared. Kernels with
a literal name are checked in `literal_launches`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import near
from ...simulator.clang import Diagnostic
from ...simulator.metal import ReflectedKernel
from ...simulator.objc.comments import without_comments
from .argument_matching import DeclaredBuffer, argument_problems, split_arguments
from .host_values import Scope, Value, is_open, says_nothing, shown_as

RULE = "launch"

_FORWARDER = re.compile(
    r"template\s*<\s*typename\s*\.\.\.\s*\w+\s*>\s*(?:(?:static|inline)\s+)*void\s+(?P<name>\w+)\s*\("
)
_PACK = re.compile(r"\.\.\.\s*(?P<name>\w+)$")
_ASKED = re.compile(r"\bgetPipelineStateForFunc\s*\(")
_SET = re.compile(r"\bmtl_setArgs\s*\(")
_SET_OTHERWISE = re.compile(r"\bmtl_set(?:Args\s*<|Buffer\b|Bytes\b)|\bset(?:Buffer|Bytes):|->setArg\b")
_ELEMENTWISE = re.compile(r"\bexec_(?:unary|binary)_kernel\s*\(")
_ERRORS = "ErrorMessages"
_NUMBERS = frozenset({"long", "ulong", "int", "uint", "float", "short", "ushort", "char", "uchar", "bool", "half"})
_SAME_BYTES = {"ulong": "long", "uint": "int"}


@dataclass(frozen=True)
class HostLaunch:
    """A launch: the expression of the kernel's name, and what is bound.

    Attributes:
        place: where it is written in the code without comments.
        line: where it is written in the file.
        bindings: the arguments; several where branches bind others, none where torch binds them itself.
        prefix: whether the name is only the beginning of the kernel's, as torch's elementwise functions take it.
    """

    place: int
    line: int
    name: str
    bindings: tuple[tuple[str, ...], ...]
    prefix: bool = False


def host_launches(text: str) -> list[HostLaunch]:
    """The launches of a file."""
    return list(_launches(without_comments(text)))


def check_upstream_launches(path: Path, text: str, kernels: Mapping[str, ReflectedKernel]) -> list[Diagnostic]:
    """Findings about the launches of one file. Without kernels nothing is said: the source may stand elsewhere."""
    if not kernels:
        return []
    code = without_comments(text)
    findings = []
    for launch in _launches(code):
        problems = dict.fromkeys(_problems(launch, Scope.at(code, launch.place), kernels))
        findings += [Diagnostic(str(path), launch.line, 0, "error", problem, RULE) for problem in problems]
    return findings


def _launches(code: str) -> Iterator[HostLaunch]:
    def line_of(place: int) -> int:
        return code.count("\n", 0, place) + 1

    forwarders, bodies = _forwarders(code)
    for name, (at_name, fixed) in forwarders.items():
        for call in re.finditer(rf"(?<!void )\b{name}\s*\(", code):
            arguments = [argument.strip() for argument in split_arguments(code, call.end() - 1)]
            if len(arguments) > fixed:
                yield HostLaunch(call.start(), line_of(call.start()), arguments[at_name], (tuple(arguments[fixed:]),))
    for asked in _ASKED.finditer(code):
        words = split_arguments(code, asked.end() - 1)
        if not words or words[0].lstrip().startswith('"') or any(asked.start() in body for body in bodies):
            continue
        following = _ASKED.search(code, asked.end())
        ends = (code.find("\n}", asked.end()), following.start() if following else -1)
        part = code[asked.end() : min((end for end in ends if end >= 0), default=len(code))]
        bound = [split_arguments(part, found.end() - 1)[1:] for found in _SET.finditer(part)]
        in_sight = bound if not _SET_OTHERWISE.search(part) else []
        yield HostLaunch(
            asked.start(),
            line_of(asked.start()),
            words[0].strip(),
            tuple(tuple(map(str.strip, one)) for one in in_sight),
        )
    for called in _ELEMENTWISE.finditer(code):
        words = split_arguments(code, called.end() - 1)
        if len(words) > 1:
            yield HostLaunch(called.start(), line_of(called.start()), words[1].strip(), (), prefix=True)


def _forwarders(code: str) -> tuple[dict[str, tuple[int, int]], list[range]]:
    """By name: which parameter is the kernel's name, and how many come before those that are bound; their bodies."""
    found: dict[str, tuple[int, int]] = {}
    bodies: list[range] = []
    for head in _FORWARDER.finditer(code):
        parameters = [parameter.strip() for parameter in split_arguments(code, head.end() - 1)]
        end = code.find("\n}", head.end())
        body = code[head.end() : end]
        pack = _PACK.search(parameters[-1]) if parameters else None
        asked = re.search(r"getPipelineStateForFunc\(\s*(\w+)\s*\)", body)
        names = [re.split(r"[\s&*]+", parameter)[-1] for parameter in parameters]
        handed = pack and re.search(rf"mtl_setArgs\(\s*\w+\s*,\s*{pack['name']}\s*\.\.\.\s*\)", body)
        if handed and asked and asked[1] in names:
            found[head["name"]] = (names.index(asked[1]), len(parameters) - 1)
            bodies.append(range(head.start(), end))
    return found, bodies


def _problems(launch: HostLaunch, scope: Scope, kernels: Mapping[str, ReflectedKernel]) -> Iterator[str]:
    for pattern in scope.names(launch.name):
        if says_nothing(pattern):
            continue
        whole = re.compile(pattern.pattern + (r"_\w+" if launch.prefix else ""))
        asked = {kernel.function: kernel for name, kernel in kernels.items() if whole.fullmatch(name)}
        if not asked:
            shown = shown_as(pattern)
            yield f"the Metal source has no kernel {shown}{near(shown, kernels)}"
            continue
        by_function = {name: _of_kernel(launch.bindings, kernel, scope) for name, kernel in asked.items()}
        # Where the name leaves several kernels open, one that fits is enough.
        judged = [min(by_function, key=lambda name: len(by_function[name]))] if is_open(pattern) else by_function
        yield from (f"{function}: {problem}" for function in judged for problem in by_function[function])


def _of_kernel(bindings: Sequence[Sequence[str]], kernel: ReflectedKernel, scope: Scope) -> list[str]:
    """The problems of what is bound to a kernel; of several branches those of the one that fits best."""
    return min((list(_of_one(arguments, kernel, scope)) for arguments in bindings), key=len, default=[])


def _of_one(arguments: Sequence[str], kernel: ReflectedKernel, scope: Scope) -> Iterator[str]:
    declared = [_declared(buffer.name, buffer.declaration) for buffer in kernel.buffers]
    values = [scope.value(argument) for argument in arguments]
    tensors = [argument for argument, value in zip(arguments, values, strict=True) if value.kind == "tensor"]
    yield from argument_problems(arguments, declared, tensors)
    if len(arguments) == len(declared):
        for index, (argument, value, buffer) in enumerate(zip(arguments, values, declared, strict=True)):
            if problem := _of_value(argument, value, buffer, kernel.buffers[index].declaration):
                yield f"buffer {index}, {buffer.name}, {problem}"


def _of_value(argument: str, value: Value, buffer: DeclaredBuffer, declaration: str) -> str:
    takes_errors = buffer.type.endswith(_ERRORS)
    if takes_errors or value.kind == "errors":
        fits = takes_errors and value.kind in ("errors", "unknown")
        return "" if fits else f"{'is' if takes_errors else 'is not'} for errors, and {argument} is bound"
    if value.kind == "tensor":
        if (
            re.fullmatch(r"\w+\.contiguous\(\)", argument)
            and buffer.is_pointer
            and not re.search(r"\bconst", declaration)
        ):
            return f"is written by the kernel, and {argument} may be a copy that is discarded"
        return ""
    if value.kind == "number" and buffer.is_pointer:
        return f"points to memory, and the number {argument} is bound"
    if value.kind == "array" and not buffer.is_constant:
        return f"points to a tensor's memory, and the values {argument} are bound"
    if value.kind == "array" and not buffer.is_pointer and buffer.type in _NUMBERS:
        return f"is a number, and the values {argument} are bound"
    given, taken = (_SAME_BYTES.get(type_, type_) for type_ in (value.element, buffer.type))
    if value.kind in ("number", "array") and {given, taken} <= _NUMBERS and given != taken:
        return f"is {buffer.type}, and {argument} is {value.element}"
    return ""


def _declared(name: str, declaration: str) -> DeclaredBuffer:
    bare = re.sub(r"\b(device|constant|const|threadgroup|thread|coherent)\b|[*&]", " ", declaration)
    return DeclaredBuffer(name, " ".join(bare.split()), "*" in declaration, "constant" in declaration)
