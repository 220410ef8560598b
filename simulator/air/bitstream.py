"""Reads LLVM's bitstream format (llvm.org/docs/BitCodeFormat.html): nested blocks of records.

A record has a code and numbers, and is encoded by an abbreviation of its block or without one. Every block begins with
its length, so unused blocks are skipped. The input is not trusted: invalid data raise a MalformedKernelError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import MalformedKernelError

BLOCK_INFO = 0
_END_BLOCK, _ENTER_BLOCK, _DEFINE_ABBREVIATION, _UNABBREVIATED = 0, 1, 2, 3

# Real modules have some hundreds; the limit stops damaged counts from allocating gigabytes.
_MOST_OPERANDS = 1 << 20

_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"


class Bits:
    """A stream of bits; the least significant bit of each byte is first."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position
        self._end = 8 * len(data)

    @property
    def at_end(self) -> bool:
        """Whether less than a word is left."""
        return self.position + 32 > self._end

    def fixed(self, width: int) -> int:
        """The next `width` bits."""
        position = self.position
        self.position = position + width
        if self.position > self._end:
            raise MalformedKernelError("its bitcode ends too early")
        first = position >> 3
        word = int.from_bytes(self.data[first : first + 9], "little")
        return (word >> (position & 7)) & ((1 << width) - 1)

    def variable(self, width: int) -> int:
        """A number in groups of `width` bits; the highest bit of a group is set if another follows."""
        first = self.position >> 3
        # 24 bytes are enough for a 64-bit number with any group width.
        word = int.from_bytes(self.data[first : first + 24], "little") >> (self.position & 7)
        more = 1 << (width - 1)
        value = shift = read = 0
        while True:
            group = word & ((more << 1) - 1)
            value |= (group & (more - 1)) << shift
            word >>= width
            read += width
            if group < more:
                break
            shift += width - 1
            if shift > 64:
                raise MalformedKernelError("its bitcode has a number of more than 64 bits")
        self.position += read
        if self.position > self._end:
            raise MalformedKernelError("its bitcode ends too early")
        return value

    def align(self) -> None:
        """Skip to the next multiple of 32 bits."""
        self.position = (self.position + 31) & ~31

    def take(self, count: int) -> bytes:
        """`count` bytes, aligned to 32 bits on both sides."""
        self.align()
        start = self.position >> 3
        if start + count > len(self.data):
            raise MalformedKernelError("its bitcode ends too early")
        self.position += 8 * count
        self.align()
        return self.data[start : start + count]


@dataclass(frozen=True)
class Operand:
    """An operand of an abbreviation: a literal, or an encoding with a width (0 if it has none)."""

    kind: str
    value: int = 0


_ENCODINGS = {1: "fixed", 2: "variable", 3: "array", 4: "character", 5: "blob"}

Abbreviation = Sequence[Operand]


@dataclass
class Record:
    """A record: its code, its numbers, and the bytes of a blob."""

    code: int
    operands: list[int]
    blob: bytes = b""


def enter_block(bits: Bits) -> tuple[int, int, int]:
    """The ID of a block, the width of its abbreviation IDs, and its end."""
    block, width = bits.variable(8), bits.variable(4)
    bits.align()
    words = bits.fixed(32)
    if not 2 <= width <= 32:
        raise MalformedKernelError(f"a block of its bitcode has words of {width} bits")
    return block, width, bits.position + 32 * words


Visit = Callable[[Record], None]


def read_block(
    bits: Bits,
    width: int,
    defined: Sequence[Abbreviation],
    on_record: Visit,
    on_block: Callable[[int, int, int], None] | None = None,
) -> None:
    """Read a block; nested blocks go to `on_block`, or are skipped."""
    abbreviations = list(defined)
    while True:
        word = bits.fixed(width)
        if word == _END_BLOCK:
            bits.align()
            return
        if word == _ENTER_BLOCK:
            block, inner_width, end = enter_block(bits)
            if on_block is None:
                bits.position = end
            else:
                on_block(block, inner_width, end)
        elif word == _DEFINE_ABBREVIATION:
            abbreviations.append(tuple(_definition(bits)))
        elif word == _UNABBREVIATED:
            code, count = bits.variable(6), bits.variable(6)
            _check_count(count)
            on_record(Record(code, [bits.variable(6) for _ in range(count)]))
        else:
            if word - 4 >= len(abbreviations):
                raise MalformedKernelError("a record of its bitcode has an abbreviation that was not defined")
            on_record(_abbreviated(bits, abbreviations[word - 4]))


def read_block_info(bits: Bits, width: int, abbreviations: dict[int, list[Abbreviation]]) -> None:
    """Read abbreviations for all blocks of the kind that the previous record named."""
    current: list[Abbreviation] = []
    while True:
        word = bits.fixed(width)
        if word == _END_BLOCK:
            bits.align()
            return
        if word == _DEFINE_ABBREVIATION:
            current.append(tuple(_definition(bits)))
        elif word == _UNABBREVIATED:
            code, count = bits.variable(6), bits.variable(6)
            _check_count(count)
            operands = [bits.variable(6) for _ in range(count)]
            if code == 1 and operands:
                current = abbreviations.setdefault(operands[0], [])
        else:
            raise MalformedKernelError("the block of abbreviations in its bitcode is damaged")


def _definition(bits: Bits) -> Iterator[Operand]:
    count = bits.variable(5)
    _check_count(count)
    for _ in range(count):
        if bits.fixed(1):
            yield Operand("literal", bits.variable(8))
            continue
        kind = _ENCODINGS.get(bits.fixed(3))
        if kind is None:
            raise MalformedKernelError("an abbreviation of its bitcode has an unknown encoding")
        width = bits.variable(5) if kind in ("fixed", "variable") else 0
        if width > 64 or (kind == "variable" and width < 2 and width != 0):
            raise MalformedKernelError(f"an abbreviation of its bitcode has fields of {width} bits")
        # A field of width 0 is 0.
        yield Operand(kind, width) if width or kind not in ("fixed", "variable") else Operand("literal", 0)


def _abbreviated(bits: Bits, abbreviation: Abbreviation) -> Record:
    numbers: list[int] = []
    blob = b""
    for at, operand in enumerate(abbreviation):
        if operand.kind == "array":
            count = bits.variable(6)
            _check_count(count)
            element = abbreviation[at + 1] if at + 1 < len(abbreviation) else operand
            # Elements of width 0 would allow very long lists.
            if element.kind not in ("fixed", "variable", "character"):
                raise MalformedKernelError("an array in its bitcode has no elements' type")
            numbers.extend(_scalar(bits, element) for _ in range(count))
            break
        if operand.kind == "blob":
            blob = bits.take(bits.variable(6))
        else:
            numbers.append(_scalar(bits, operand))
    if not numbers:
        raise MalformedKernelError("a record of its bitcode has no code")
    return Record(numbers[0], numbers[1:], blob)


def _scalar(bits: Bits, operand: Operand) -> int:
    if operand.kind == "fixed":
        return bits.fixed(operand.value)
    if operand.kind == "variable":
        return bits.variable(operand.value)
    if operand.kind == "literal":
        return operand.value
    if operand.kind == "character":
        return ord(_CHARACTERS[bits.fixed(6)])
    raise MalformedKernelError("an abbreviation of its bitcode is damaged")


def _check_count(count: int) -> None:
    if count > _MOST_OPERANDS:
        raise MalformedKernelError(f"a record of its bitcode claims to have {count} operands")
