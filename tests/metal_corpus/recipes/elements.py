"""Element types by the names that projects use, and inputs of these types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Element:
    """An element type. Unsigned integers are stored as signed ones of that width, and are never negative."""

    dtype: torch.dtype
    signed: bool = True

    @property
    def size(self) -> int:
        """Bytes of one."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.dtype.is_floating_point

    @property
    def cast(self) -> str:
        """The name in `arg_casts` for a number passed by value; "" if it needs none."""
        return {torch.float16: "fp16", torch.bfloat16: "bf16"}.get(self.dtype, "")


_NAMES: dict[Element, str] = {
    Element(torch.bool): "bool bool_",
    Element(torch.uint8, signed=False): "uint8 u8 uchar uint8_t",
    Element(torch.int8): "int8 i8 char int8_t",
    Element(torch.int16): "int16 i16 short int16_t",
    Element(torch.int16, signed=False): "uint16 u16 ushort uint16_t",
    Element(torch.int32): "int32 i32 int int32_t",
    Element(torch.int32, signed=False): "uint32 u32 uint uint32_t",
    Element(torch.int64): "int64 i64 long int64_t",
    Element(torch.int64, signed=False): "uint64 u64 ulong uint64_t",
    Element(torch.float16): "float16 f16 half float16_t",
    Element(torch.float32): "float32 f32 float",
    Element(torch.bfloat16): "bfloat16 bf16 bfloat bfloat16_t",
    Element(torch.complex64): "complex64 complex64_t",
}
_BY_NAME = {name: element for element, names in _NAMES.items() for name in names.split()}


def element(name: str) -> Element:
    """The type with this name in a project."""
    return _BY_NAME[name]


def pattern(*elements: str) -> str:
    """A pattern that matches these names, the longest first."""
    return "|".join(sorted(elements, key=len, reverse=True))


def numbers(shape: int | Sequence[int], of: Element, low: float = -4, high: float = 4, seed: int = 0) -> torch.Tensor:
    """Reproducible numbers from `low` to `high`; unsigned integers start at 0."""
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    generator = torch.Generator().manual_seed(seed)
    if of.dtype is torch.bool:
        return torch.randint(0, 2, size, generator=generator).bool()
    if of.dtype.is_complex:
        parts = torch.rand((*size, 2), generator=generator, dtype=torch.float64) * (high - low) + low
        return torch.view_as_complex(parts).to(of.dtype)
    if of.is_float:
        return (torch.rand(size, generator=generator, dtype=torch.float64) * (high - low) + low).to(of.dtype)
    first = math.ceil(low) if of.signed else max(0, math.ceil(low))
    return torch.randint(first, max(first, math.floor(high)) + 1, size, generator=generator).to(of.dtype)


def distinct(rows: int, columns: int, of: Element, seed: int = 0) -> torch.Tensor:
    """Rows of distinct numbers in random order."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(columns, generator=generator) for _ in range(rows)])
    return (order - (columns // 2 if of.signed else 0)).to(of.dtype)


def blank(shape: int | Sequence[int], of: Element) -> torch.Tensor:
    """Memory for a result, filled with a value that no kernel writes: NaN, 101, or a byte that is not a bool."""
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    if of.dtype is torch.bool:
        return torch.full(size, 101, dtype=torch.uint8).view(torch.bool)
    return torch.full(size, math.nan if of.is_float or of.dtype.is_complex else 101, dtype=of.dtype)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in float64, complex128 or int64."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor.long()


def exactly(result: torch.Tensor, of: Element) -> torch.Tensor:
    """Integers wrapped to the width of this type; floats stay in float64."""
    return result if of.is_float or of.dtype.is_complex else result.to(of.dtype)


def longs(values: Sequence[int]) -> torch.Tensor:
    """64-bit integers in memory."""
    return torch.tensor(list(values), dtype=torch.int64)


def ints(values: Sequence[int]) -> torch.Tensor:
    """32-bit integers in memory."""
    return torch.tensor(list(values), dtype=torch.int32)


def packed(content: bytes) -> torch.Tensor:
    """Bytes of a struct in memory."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
