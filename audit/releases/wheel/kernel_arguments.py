"""The arguments of shipped kernels as lines of text, and how they differ between two libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ....simulator.air.bitcode import signature_of_bitcode
from ....simulator.air.container import LibraryFile
from ....simulator.air.signature import DEVICE, BufferArgument, KernelSignature, StructField
from ....simulator.errors import AirError

_ARRAY = "metal::array"
_SPACES = {1: "device", 2: "constant", 3: "threadgroup"}


def signature_of(library: LibraryFile, name: str) -> KernelSignature:
    """The signature of a kernel. Raises AirError that names kernel and file where its module cannot be read."""
    try:
        return signature_of_bitcode(library.bitcode(name), name)
    except AirError as error:
        raise type(error)(f"{library.path}: kernel {name}: {error}") from None


def access_of(buffer: BufferArgument) -> str:
    """How a kernel gets at a buffer, such as `read, constant`."""
    words = [buffer.access.replace("_", " and ")]
    if buffer.address_space != DEVICE:
        words.append(_SPACES.get(buffer.address_space, f"address space {buffer.address_space}"))
    if buffer.indirect:
        words.append("holds addresses")
    if not buffer.used:
        words.append("not used")
    return ", ".join(words)


def members(fields: Iterable[StructField], outer: str = "", base: int = 0) -> Iterator[tuple[str, str, int, int]]:
    """Every member of a struct: its name with those of the enclosing structs, its type, offset and size."""
    for each in fields:
        if each.type_name == _ARRAY and len(each.fields) == 1:
            # metal::array is a struct of one member: its contents are shown instead.
            (elements,) = each.fields
            yield from members([replace(elements, name=each.name)], outer, base + each.offset)
            continue
        name = f"{outer}.{each.name}"
        length = f"[{each.array_length}]" if each.array_length else ""
        pointer = " *" if each.is_pointer else ""
        yield f"{name}{length}", f"{each.type_name}{pointer}", base + each.offset, each.size * (each.array_length or 1)
        yield from members(each.fields, name, base + each.offset)


@dataclass(frozen=True)
class ArgumentsDiff:
    """Kernels whose arguments changed alike: the lines that only the older or only the newer ones have."""

    went: tuple[str, ...]
    came: tuple[str, ...]
    kernels: tuple[str, ...]


def compare_arguments(before: LibraryFile, after: LibraryFile, names: Iterable[str]) -> list[ArgumentsDiff]:
    """How the arguments of these kernels, which both libraries have, changed; what most have in common comes first."""
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name in names:
        old, new = (tuple(_lines(signature_of(library, name))) for library in (before, after))
        went = tuple(line for line in old if line not in new)
        came = tuple(line for line in new if line not in old)
        if went or came:
            alike.setdefault((went, came), []).append(name)
    found = [ArgumentsDiff(went, came, tuple(kernels)) for (went, came), kernels in alike.items()]
    return sorted(found, key=lambda each: -len(each.kernels))


def _lines(signature: KernelSignature) -> Iterator[str]:
    for buffer in (*signature.buffers, *signature.threadgroup_buffers):
        kind = "threadgroup memory" if buffer.is_threadgroup else "buffer"
        size = f", {buffer.size} bytes" if buffer.fields else ""
        yield f"{kind} {buffer.index} {buffer.name}: {buffer.type_name}{size}, {access_of(buffer)}"
        for name, type_name, offset, size_of_member in members(buffer.fields, buffer.name):
            yield f"{name}: {type_name} at {offset}, {size_of_member} bytes"
    for builtin in signature.builtins:
        yield f"{builtin.kind}: {builtin.type_name}"
    if signature.max_threads:
        yield f"at most {signature.max_threads} threads"
