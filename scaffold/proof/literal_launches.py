"""Checks host code against the Metal source that it launches: names of kernels, bound arguments, encoders.

No compiler finds such mistakes, because host code refers to a kernel by a string. This module checks only literal text:
calls of `launch` or of torch's functions that return a kernel, with a literal name; numbers that are cast in the call;
tensors with the name of a parameter. Values that are computed elsewhere are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import near
from ...simulator.clang import Diagnostic
from ...simulator.objc.comments import without_comments
from .argument_matching import DeclaredBuffer, argument_problems, split_arguments

RULE = "launch"
# The types for which host code builds a kernel's name, if it has no function that lists them.
_TYPES = ("float", "half", "bfloat")
_NAMES_TYPES = re.compile(r"\bstd::string metal_type\([^)]*\)\s*\{(?P<body>.*?)\n\}", re.DOTALL)
_NAMED_TYPE = re.compile(r'return "(?P<metal>\w+)";')

_KERNEL = re.compile(r"\bkernel\s+void\s+(?P<name>\w+)\s*\(")
_PARAMETER = re.compile(
    r"^(?P<type>.*?)(?P<name>\w+)\s*"
    r"(?:\[\[\s*(?P<attribute>\w+)\s*(?:\(\s*(?P<index>\d+)\s*\))?[^\]]*\]\])?$",
    re.DOTALL,
)
_LAUNCH = re.compile(r"\blaunch\s*\(")
_NAME = re.compile(r'"(?P<stem>\w+)"\s*(?P<typed>\+\s*(?:mps_support::)?(?:metal_type|scalarToMetalTypeString)\b)?')
_SUPPORT = re.compile(r"\bmps_support\b")
_GIVES_KERNEL = r"get(?:KernelFunction|PipelineStateForFunc)"
_ASKED = re.compile(rf'\b{_GIVES_KERNEL}\s*\(\s*(?=")')
_DISPATCH = re.compile(r"\bdispatchThread(s|groups)\b|\bmtl_dispatch[12]DJob\b")
_LITERAL_FUNCTION = re.compile(r'newFunctionWithName:\s*@"(?P<name>\w+)"')
_SECOND_ENCODER = re.compile(r"\bcommandBuffer\s*\(\s*\)\s+computeCommandEncoder\b")
_STORAGE = r"(?:(?P<tensor>\w+)\.storage\(\)\.data\(\)|getMTLBufferStorage\(\s*(?P<other>\w+)\s*\))"
_BUFFER_OF_TENSOR = re.compile(rf"\b(?P<buffer>\w+)\s*=[^;=]*?{_STORAGE}")
_AT_BEGINNING = re.compile(rf"\bsetBuffer:\s*(?:(?P<buffer>\w+)|[^;]*?{_STORAGE}[^;:]*?)\s+offset:\s*0\s+atIndex:")
_BYTES = re.compile(r"\bsetBytes:\s*&(?P<name>\w+)\s+length:\s*sizeof\((?P<measured>[^()]*)\)")


def kernel_parameters(programs: Sequence[str]) -> dict[str, list[DeclaredBuffer]]:
    """The buffers of each kernel function that is written in these programs, templates included, by its name.

    In the order of their indices.
    """
    parameters = {}
    for program in programs:
        text = without_comments(program)
        for kernel in _KERNEL.finditer(text):
            words = [_PARAMETER.match(" ".join(part.split())) for part in split_arguments(text, kernel.end() - 1)]
            bound = [word for word in words if word and word["attribute"] in ("buffer", None)]
            if all(word["index"] for word in bound):
                bound.sort(key=lambda word: int(word["index"]))
            parameters[kernel["name"]] = [_parameter(word) for word in bound]
    return parameters


def _parameter(match: re.Match[str]) -> DeclaredBuffer:
    declared = match["type"]
    bare = re.sub(r"\b(device|constant|const|threadgroup|thread|coherent)\b|[*&\s]", " ", declared)
    return DeclaredBuffer(match["name"], " ".join(bare.split()), "*" in declared, "constant" in declared)


def named_types(texts: Iterable[str]) -> Sequence[str]:
    """The type suffixes that `metal_type` of generated host code appends to a kernel's name."""
    for text in texts:
        if match := _NAMES_TYPES.search(without_comments(text)):
            return _NAMED_TYPE.findall(match["body"]) or _TYPES
    return _TYPES


def check_literal_launches(
    path: Path,
    text: str,
    names: Collection[str],
    parameters: Mapping[str, Sequence[DeclaredBuffer]],
    types: Sequence[str] = _TYPES,
) -> list[Diagnostic]:
    """Findings about the launches of one file.

    `names`: the kernels in the Metal programs of the file; if empty, nothing is checked: the source may be elsewhere.
    `parameters`: those of each kernel function. `types`: possible suffixes of a name.
    """
    if not names:
        return []
    code = without_comments(text)
    findings = []
    for match in _LITERAL_FUNCTION.finditer(code):
        findings += _unknown(path, code, match.start(), [match["name"]], names)
    for place, stem, is_typed, arguments in _launches(code):
        wanted = [f"{stem}{word}" for word in types] if is_typed else [stem]
        if is_typed and _ASKED.match(code, place) and any(name.startswith(stem) for name in names):
            wanted = []  # torch's own host code asks for types that its checks have let through
        unknown = _unknown(path, code, place, wanted, names)
        findings += unknown
        kernel = stem.rstrip("_") if is_typed else stem
        declared = parameters.get(kernel)
        if declared is not None and arguments is not None and not unknown:
            findings += [
                _error(path, code, place, f"{kernel}: {problem}") for problem in argument_problems(arguments, declared)
            ]
    return findings


def check_encoders(path: Path, text: str) -> list[Diagnostic]:
    """Findings about encoders: torch's own encoder must stay open, and each encoded kernel must be dispatched."""
    code = without_comments(text)
    findings = []
    for match in re.finditer(r"\[\s*(?P<encoder>\w+)\s+endEncoding\s*\]", code):
        if re.search(r"\bcommandEncoder\s*\(\s*\)", code) and not re.search(r"\bcomputeCommandEncoder\b", code):
            message = "endEncoding on the encoder that torch has open: its next operation encodes into an ended one"
            findings.append(_error(path, code, match.start(), message))
    prepared = re.search(r"\bsetComputePipelineState:", code)
    if prepared and not _DISPATCH.search(code):
        message = "a pipeline is set and nothing is dispatched: the kernel never runs"
        findings.append(_error(path, code, prepared.start(), message))
    for match in _SECOND_ENCODER.finditer(code):
        if not re.search(r"\bendKernelCoalescing\b", code):
            message = "a second encoder on a command buffer on which torch has one open: take stream->commandEncoder()"
            findings.append(_error(path, code, match.start(), message))
    findings += _offsets(path, code)
    findings += _lengths(path, code)
    for start in re.finditer(r"\bstartEncoding\s*\(", code):
        if not re.search(r"\bdispatch\s*\(|\bdispatchThread", code[start.end() :]):
            message = "encoding starts and nothing is dispatched: the kernel never runs"
            findings.append(_error(path, code, start.start(), message))
    return findings


def _offsets(path: Path, code: str) -> Iterator[Diagnostic]:
    """Tensors that are bound from the beginning of their storage."""
    tensors = {match["buffer"]: match["tensor"] or match["other"] for match in _BUFFER_OF_TENSOR.finditer(code)}
    for match in _AT_BEGINNING.finditer(code):
        tensor = tensors.get(match["buffer"]) if match["buffer"] else match["tensor"] or match["other"]
        if tensor:
            message = f"the tensor {tensor} is bound from the beginning of its storage, without its own offset"
            yield _error(path, code, match.start(), message)


def _lengths(path: Path, code: str) -> Iterator[Diagnostic]:
    """Numbers that are passed by value with the size of a type that is not theirs."""
    for match in _BYTES.finditer(code):
        name, measured = match["name"], match["measured"].strip()
        declared = re.findall(rf"([\w:]+)\s*&?\s*\b{name}\s*[,)=;{{]", code[: match.start()])
        if declared and measured not in (name, declared[-1]) and re.fullmatch(r"[\w:]+", measured):
            message = f"{name} is {declared[-1]}, and as many bytes as {measured} has are passed: write sizeof({name})"
            yield _error(path, code, match.start(), message)


def _launches(code: str) -> Iterator[tuple[int, str, bool, list[str] | None]]:
    """Each launch: position, literal of the kernel's name, whether a type is appended to it, and arguments."""
    # `launch` is a common name: that of the generated support headers is meant.
    for match in _LAUNCH.finditer(code) if _SUPPORT.search(code) else ():
        arguments = [argument.strip() for argument in split_arguments(code, match.end() - 1)]
        name = _NAME.match(arguments[1]) if len(arguments) > 2 else None
        if name:
            yield match.start(), name["stem"], bool(name["typed"]), [*arguments[3:], "static_cast<int64_t>(threads)"]
    for match in _ASKED.finditer(code):
        name = _NAME.match(code, match.end())
        if name:
            yield match.start(), name["stem"], bool(name["typed"]), _set_arguments(code[match.end() :])


def _set_arguments(rest: str) -> list[str] | None:
    """The arguments that are bound before the next kernel; None if the code does not show them.

    By `kernel->setArg(n, ...)` one by one, or by one `mtl_setArgs(encoder, ...)`.
    """
    following = re.search(rf"\b{_GIVES_KERNEL}\b", rest)
    part = rest[: following.start()] if following else rest
    if re.search(r"\bmtl_setArgs\b", part):
        together = list(re.finditer(r"\bmtl_set(?:Args|Buffer|Bytes)\s*[<(]", part))
        first = together[0]
        return (
            [word.strip() for word in split_arguments(part, first.end() - 1)[1:]]
            if len(together) == 1 and first[0].rstrip("(").strip() == "mtl_setArgs"
            else None
        )
    bound: dict[int, str] = {}
    for match in re.finditer(r"->set(?:Arg|ErrorBufferIndex)\s*\(", part):
        index, *values = split_arguments(part, match.end() - 1)
        values = values or ["getErrorBuffer()"]
        if not index.strip().isdigit() or len(values) != 1:
            return None
        bound[int(index)] = values[0].strip()
    return [bound[index] for index in sorted(bound)] if bound and sorted(bound) == list(range(len(bound))) else None


def _unknown(path: Path, code: str, place: int, wanted: Sequence[str], names: Collection[str]) -> list[Diagnostic]:
    missing = [name for name in wanted if name not in names]
    if not missing:
        return []
    message = f"the Metal source has no kernel {', '.join(missing)}{near(missing[0], names)}"
    return [_error(path, code, place, message)]


def _error(path: Path, code: str, place: int, message: str) -> Diagnostic:
    return Diagnostic(str(path), code.count("\n", 0, place) + 1, 0, "error", message, RULE)
