"""Compares the arguments that host code binds to a kernel's buffers with the kernel's parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DENSE = re.compile(r"^(?P<name>\w+)_dense$")


@dataclass(frozen=True)
class DeclaredBuffer:
    """A kernel parameter for a buffer: its name, its type without qualifiers, whether it is a pointer or constant."""

    name: str
    type: str
    is_pointer: bool
    is_constant: bool


def split_arguments(text: str, opening: int) -> list[str]:
    """The arguments in the bracket at `opening`, split at commas; empty if the bracket does not close."""
    parts: list[str] = []
    depth, start = 0, opening + 1
    for place in range(opening, len(text)):
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                last = text[start:place]
                return [*parts, last] if last.strip() or parts else []
        elif letter == "," and depth == 1 and not _inside_template(text[start:place]):
            parts.append(text[start:place])
            start = place + 1
    return []


def _inside_template(part: str) -> bool:
    """Whether a comma is inside template arguments: `std::pair<a, b>`, not `a < b, c`."""
    opened = re.search(r"\w<[\w:\s*&,]*$", part)
    return opened is not None


def argument_problems(arguments: Sequence[str], declared: Sequence[DeclaredBuffer]) -> Iterator[str]:
    """Problems with the arguments of one launch that the call itself shows: their number, names, casts."""
    if len(arguments) != len(declared):
        yield f"{len(arguments)} arguments are bound, and the kernel has {len(declared)} buffers"
        return
    parameter_names = {p.name for p in declared}
    named = [_variable(argument) for argument in arguments]
    # A variable may be bound twice on purpose; one that its own parameter does not get is in the wrong place.
    in_place = {name for name, parameter in zip(named, declared, strict=True) if name == parameter.name}
    for index, (argument, parameter) in enumerate(zip(arguments, declared, strict=True)):
        where = f"buffer {index}, {parameter.name}"
        dense = _DENSE.match(argument)
        if dense and not (parameter.is_pointer and not parameter.is_constant):
            yield f"{where}, is a number, and the tensor {argument} is bound"
        elif dense and dense["name"] in parameter_names and dense["name"] != parameter.name:
            yield f"{where}, is bound to {argument}, which belongs to the parameter {dense['name']}"
        elif not dense and named[index] in parameter_names - in_place:
            yield f"{where}, is bound to {argument}, which belongs to the parameter {named[index]}"
        number = _number(argument)
        if number and parameter.is_pointer:
            yield f"{where}, points to memory, and the number {argument} is bound"
        elif number and parameter.type in _SIZES and number not in _SIZES[parameter.type]:
            yield f"{where}, is {parameter.type}, and {argument} is {number}"


# What the host may bind to a number of Metal: as many bytes, of the same kind.
_SIZES = {
    "long": ("int64_t", "uint64_t"),
    "ulong": ("int64_t", "uint64_t"),
    "int": ("int32_t", "uint32_t", "int"),
    "uint": ("int32_t", "uint32_t", "int"),
    "float": ("float",),
}


def _number(argument: str) -> str:
    """The C++ type of a number if its text shows it, else empty."""
    if match := re.match(r"^static_cast<(?P<type>\w+)>\(", argument):
        return match["type"]
    if argument == "row_length":
        return "int64_t"
    return "float" if re.search(r"(\.|->)to<float>\(\)|^float\(|\df$", argument) else ""


def _variable(argument: str) -> str:
    """The variable or field that is bound, converted or not; empty for anything else."""
    match = re.fullmatch(r"(?:static_cast<\w+>\()?(?:\w+\.)?(\w+)(?:(?:\.|->)(?:to<\w+>|contiguous)\(\))?\)?", argument)
    return match[1] if match else ""
