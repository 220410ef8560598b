"""Which overloads a library registers for MPS, and with what: read from the code that registers them.

PyTorch's `TORCH_LIBRARY_IMPL(aten, MPS, m)` compiles to a function `TORCH_LIBRARY_IMPL_init_aten_MPS_<n>` that loads,
for each `m.impl(name, kernel)`, the address of the name and calls `torch::Library::_impl`. The names are thus exactly
those that the dispatcher gets, including those in hand-written code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from .macho import Image

KEYS = ("MPS", "SparseMPS", "SparseCsrMPS", "AutocastMPS")

_INIT = re.compile(rb"TORCH_LIBRARY_IMPL_init_\w+?_(?:" + "|".join(KEYS).encode() + rb")_\d+ERN5torch7LibraryE(?=\0)")
_INIT_NAME = re.compile(r"TORCH_LIBRARY_IMPL_init_(\w+?)_(" + "|".join(KEYS) + r")_\d+ERN5torch7LibraryE$")

# Generated initializers are in `at::(anonymous namespace)`; those in the sources are in other namespaces, or static.
_GENERATED = "__ZN2at12_GLOBAL__N_1"

_LIBRARY_IMPL = "NR5torch7Library5_impl"
_LIBRARY_FALLBACK = "NR5torch7Library9_fallback"
# How a boxed function becomes what is registered: before 2.10 and since.
_BOXED_CONSTRUCTORS = ("CppFunction19makeFromBoxedKernel", "CppFunctionC1EN3c1014KernelFunction")
_BOXED_FUNCTION = "make_boxed_function"

_ADDRESS, _CALL = "address", "call"


class Kind(str, Enum):
    """The kind of function that is registered."""

    KERNEL = "kernel"
    FALLBACK = "fallback to CPU"
    REFUSAL = "refusal"
    FALLTHROUGH = "fallthrough"


@dataclass(frozen=True)
class Registration:
    """One `m.impl`: the dispatch key, the overload with its namespace, and what is registered for it.

    `generated`: the call is in code that PyTorch generates from the yaml, not in a file written by hand.
    """

    key: str
    overload: str
    kind: Kind
    generated: bool = True


def read_registrations(image: Image) -> list[Registration]:
    """Every registration under the MPS keys, in the order of the code, each once.

    Raises MalformedBinaryError if an initializer lies outside the code.
    """
    registrations: dict[Registration, None] = {}
    for symbol, address in image.symbols.named(_INIT):
        name = _INIT_NAME.search(symbol)
        if name is None:
            continue
        namespace, key = name.groups()
        for overload, kind in _registered(image, address):
            full = overload if "::" in overload else f"{namespace}::{overload}"
            registrations[Registration(key, full, kind, symbol.startswith(_GENERATED))] = None
    return list(registrations)


def _registered(image: Image, address: int) -> Iterator[tuple[str, Kind]]:
    """Names and kinds in one initializer: what is loaded after one call of `_impl` belongs to the next call.

    A boxed function that is registered several times in a row is loaded once and kept in a register.
    """
    name: str | None = None
    evidence: list[str] = []
    boxed: str | None = None
    for action, target in _references(image.instructions(address), address):
        if action is _ADDRESS:
            text = image.c_string(target)
            if text is not None:
                name = text
                continue
        symbol = image.symbols.at(target)
        if symbol is None:
            continue
        if _LIBRARY_IMPL in symbol:
            reused = [boxed] if boxed and any(call in seen for seen in evidence for call in _BOXED_CONSTRUCTORS) else []
            if name is not None:
                yield name, _kind(evidence + reused)
            name, evidence = None, []
        elif _LIBRARY_FALLBACK in symbol:
            name, evidence = None, []
        else:
            evidence.append(symbol)
            boxed = symbol if _BOXED_FUNCTION in symbol else boxed


def _kind(symbols: list[str]) -> Kind:
    """The kind, from the mangled names of the functions that were passed with the registered name."""
    if any("fallthrough_kernel" in symbol or "makeFallthrough" in symbol for symbol in symbols):
        return Kind.FALLTHROUGH
    if any(re.search(r"\d+mps_fallback", symbol) for symbol in symbols):
        return Kind.FALLBACK
    if any("slow_conv2d_forward_mps" in symbol for symbol in symbols):
        return Kind.REFUSAL
    return Kind.KERNEL


def _references(instructions: list[int], start: int) -> Iterator[tuple[str, int]]:
    """Addresses that arm64 code loads (ADR, ADRP with ADD) and functions that it calls (BL, B), in order."""
    pages: dict[int, int] = {}
    for number, word in enumerate(instructions):
        here = start + 4 * number
        if word & 0x1F000000 == 0x10000000:
            offset = _signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
            if word >> 31:
                pages[word & 31] = (here & ~0xFFF) + (offset << 12)
            else:
                yield _ADDRESS, here + offset
        elif word & 0xFF800000 == 0x91000000:
            page = pages.get(word >> 5 & 31)
            if page is not None:
                shift = 12 if word >> 22 & 1 else 0
                yield _ADDRESS, page + ((word >> 10 & 0xFFF) << shift)
        elif word & 0x7C000000 == 0x14000000:
            yield _CALL, here + 4 * _signed(word & 0x3FFFFFF, 26)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
