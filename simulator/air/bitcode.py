"""Reads the arguments of a kernel from its bitcode, without a compiler.

It reads three blocks of the module, which precede all code: types, constants and metadata. Nodes have their numbers in
the bitcode, which differ from those in assembly.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import MalformedKernelError
from .bitstream import BLOCK_INFO, Abbreviation, Bits, Record, Visit, enter_block, read_block, read_block_info
from .metadata import Metadata, NodeReference, Value
from .signature import KernelSignature, kernel_signature

_WRAPPER = 0x0B17C0DE
_MAGIC = b"BC\xc0\xde"

# Numbers of blocks, and of records in them.
_MODULE, _CONSTANTS, _METADATA, _TYPES, _NAMES = 8, 11, 15, 17, 23
_FUNCTION = 8
_GLOBAL_VALUES = frozenset({7, 8, 9, 14, 15})  # variables, functions and aliases, which constants are numbered after
_TYPE_COUNT, _TYPE_INTEGER, _STRUCT_NAME = 1, 7, 19
_SET_TYPE, _NULL, _INTEGER = 1, 2, 4
_VALUE, _NODE, _NAME, _DISTINCT_NODE, _KIND, _NAMED_NODE, _STRINGS = 2, 3, 4, 5, 6, 10, 35
_NO_NODES = frozenset({_NAME, _KIND, _NAMED_NODE, _STRINGS, 36, 38, 39})  # and attachments, offset and index


@dataclass
class _Module:
    """The contents of a module: integers by value number, and raw operands."""

    types_are_integers: list[bool] = field(default_factory=list)
    values: int = 0
    integers: dict[int, int] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    metadata_values: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, list[int]] = field(default_factory=dict)
    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def metadata(self) -> Metadata:
        """The nodes with resolved operands."""
        return Metadata({number: tuple(map(self._operand, node)) for number, node in self.nodes.items()}, self.lists)

    def _operand(self, identifier: int) -> Value:
        """An operand is a number plus 1; 0 is null."""
        number = identifier - 1
        if 0 <= number < len(self.strings):
            return self.strings[number]
        if number in self.metadata_values:
            return self.integers.get(self.metadata_values[number])
        return NodeReference(number) if identifier else None


def metadata_of_bitcode(bitcode: bytes) -> Metadata:
    """The metadata of a module.

    Raises:
        MalformedKernelError: it is not valid bitcode.
    """
    bits = Bits(_payload(bitcode))
    while not bits.at_end:
        if bits.fixed(2) != 1:
            raise MalformedKernelError("its bitcode has data between blocks")
        block, width, end = enter_block(bits)
        if block == _MODULE:
            module = _Module()
            _read_module(bits, width, module)
            return module.metadata()
        bits.position = end
    raise MalformedKernelError("its bitcode has no module")


@functools.lru_cache(maxsize=4)  # the library asks for it, then the compiler
def signature_of_bitcode(bitcode: bytes, name: str) -> KernelSignature:
    """The arguments of the kernel of a module.

    Raises:
        MalformedKernelError: the module is not a kernel.
    """
    return kernel_signature(metadata_of_bitcode(bitcode), name)


def declared_functions(bitcode: bytes) -> tuple[str, ...]:
    """The undefined functions of a module: LLVM's intrinsics and Apple's operations.

    Raises:
        MalformedKernelError: it is not valid bitcode.
    """
    bits = Bits(_payload(bitcode))
    spans: list[tuple[int, int]] = []
    names = b""

    def on_function(record: Record) -> None:
        if record.code == _FUNCTION and len(record.operands) > 4 and record.operands[4]:
            spans.append((record.operands[0], record.operands[1]))

    def on_names(record: Record) -> None:
        nonlocal names
        names = record.blob

    while not bits.at_end:
        if bits.fixed(2) != 1:
            raise MalformedKernelError("its bitcode has data between blocks")
        block, width, end = enter_block(bits)
        if block == _MODULE:
            read_block(bits, width, (), on_function)
        elif block == _NAMES:
            read_block(bits, width, (), on_names)
        bits.position = end
    if any(start + size > len(names) for start, size in spans):
        raise MalformedKernelError("a function name is outside of the name table")
    return tuple(names[start : start + size].decode("utf-8", "replace") for start, size in spans)


def _payload(bitcode: bytes) -> bytes:
    """The stream after the magic number, without the wrapper of Apple's tools."""
    if len(bitcode) >= 20 and int.from_bytes(bitcode[:4], "little") == _WRAPPER:
        _, _, offset, size, _ = struct.unpack_from("<5I", bitcode)
        if offset + size > len(bitcode):
            raise MalformedKernelError("its bitcode ends too early")
        bitcode = bitcode[offset : offset + size]
    if bitcode[:4] != _MAGIC:
        raise MalformedKernelError("its module is not LLVM bitcode")
    return bitcode[4:]


def _read_module(bits: Bits, width: int, module: _Module) -> None:
    abbreviations: dict[int, list[Abbreviation]] = {}
    readers: Mapping[int, Callable[[_Module], Visit]] = {
        _TYPES: _type_reader,
        _CONSTANTS: _constant_reader,
        _METADATA: _metadata_reader,
    }

    def on_record(record: Record) -> None:
        module.values += record.code in _GLOBAL_VALUES

    def on_block(block: int, inner_width: int, end: int) -> None:
        if block == BLOCK_INFO:
            read_block_info(bits, inner_width, abbreviations)
        elif block in readers:
            read_block(bits, inner_width, abbreviations.get(block, ()), readers[block](module))
        else:
            bits.position = end

    read_block(bits, width, abbreviations.get(_MODULE, ()), on_record, on_block)


def _type_reader(module: _Module) -> Visit:
    def on_record(record: Record) -> None:
        if record.code not in (_TYPE_COUNT, _STRUCT_NAME):
            module.types_are_integers.append(record.code == _TYPE_INTEGER)

    return on_record


def _constant_reader(module: _Module) -> Visit:
    is_integer = False

    def on_record(record: Record) -> None:
        nonlocal is_integer
        first = record.operands[0] if record.operands else 0
        if record.code == _SET_TYPE:
            is_integer = first < len(module.types_are_integers) and module.types_are_integers[first]
            return
        if is_integer and record.code == _NULL:
            module.integers[module.values] = 0
        elif is_integer and record.code == _INTEGER:
            module.integers[module.values] = -(first >> 1) if first & 1 else first >> 1  # the sign is the lowest bit
        module.values += 1

    return on_record


def _metadata_reader(module: _Module) -> Visit:
    name = ""
    number = 0  # strings come first, then values and nodes in the order of their records

    def on_record(record: Record) -> None:
        nonlocal name, number
        if record.code == _STRINGS:
            module.strings = _strings(record)
            number = len(module.strings)
        elif record.code == _NAME:
            name = bytes(character & 0xFF for character in record.operands).decode("utf-8", "replace")
        elif record.code == _NAMED_NODE:
            module.lists[name] = tuple(record.operands)
        elif record.code == _VALUE and len(record.operands) == 2:
            module.metadata_values[number] = record.operands[1]
        elif record.code in (_NODE, _DISTINCT_NODE):
            module.nodes[number] = record.operands
        number += record.code not in _NO_NODES

    return on_record


def _strings(record: Record) -> list[str]:
    """The strings of a module: first their lengths, then their characters."""
    if len(record.operands) != 2 or record.operands[1] > len(record.blob):
        raise MalformedKernelError("the strings of its metadata are damaged")
    count, start = record.operands
    lengths = Bits(record.blob[:start])
    texts = []
    for _ in range(count):
        end = start + lengths.variable(6)
        if end > len(record.blob):
            raise MalformedKernelError("the strings of its metadata end too early")
        texts.append(record.blob[start:end].decode("utf-8", "replace"))
        start = end
    return texts
