"""Definitions of the `air.*` operations in LLVM assembly: what Apple's GPUs do in hardware or in a closed library.

One module a kind of operation; each writes the body of a function that is inlined where the kernel calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..llvm_text import symbol
from . import atomics, conversions, integers, lanes, mathematics, matrices
from .accuracy import Perturbation
from .body import Body
from .operation import Operation
from .variant import PLAIN, Variant

__all__ = ["PLAIN", "Definition", "Operation", "Perturbation", "UnknownOperationError", "Variant", "define"]

Writer = Callable[[Body, Operation], str]
"""Writes a body and returns the operand that holds the result; empty where there is none."""

_BY_KEY: dict[str, Writer] = {
    "convert": conversions.convert,
    "all": integers.all_or_any,
    "any": integers.all_or_any,
    "sincos": mathematics.sine_and_cosine,
    "dot": mathematics.dot,
    "atomic": atomics.atomic,
    "get_simdgroup_size": lanes.simd_width,
    "simd_is_first": lanes.is_first,
    **dict.fromkeys(lanes.BY_TYPE, lanes.lanes),
    **dict.fromkeys(lanes.VOTES, lanes.vote),
    **dict.fromkeys(lanes.MASKS, lanes.mask),
    **dict.fromkeys(lanes.BARRIERS, lanes.barrier),
}


class UnknownOperationError(ValueError):
    """The host has no code for an operation."""


@dataclass(frozen=True)
class Definition:
    """An operation's function, and the declarations of what it calls."""

    text: str
    declarations: frozenset[str]


def _writer(operation: Operation) -> Writer | None:
    if operation.key.startswith(matrices.PREFIX):
        return matrices.matrix
    if operation.key in integers.NAMES and operation.result.element.startswith("i"):
        return integers.integer
    if operation.key in mathematics.NAMES and operation.result.element in ("half", "bfloat", "float"):
        return mathematics.floating_point
    return _BY_KEY.get(operation.key)


def define(operation: Operation, variant: Variant = PLAIN) -> Definition:
    """The function for an operation in a kernel of this variant.

    Raises:
        UnknownOperationError: the host has no code for it.
    """
    write = _writer(operation)
    if write is None:
        raise UnknownOperationError(operation.name)
    body = Body(variant)
    try:
        result = write(body, operation)
    except (ValueError, LookupError) as error:
        raise UnknownOperationError(f"{operation.name}: {error}") from None
    # Lanes meet by the place of the call, so those that communicate may not be moved or merged.
    attributes = "convergent " if "airrt_simd" in str(body.declarations) or "barrier" in operation.name else ""
    # What an atomic operation tells of itself is not to be told again of its plain load and store.
    tells = variant.checked and operation.key == "atomic"
    attributes += "noinline nosanitize_coverage nounwind" if tells else "alwaysinline nounwind"
    parameters = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(operation.types))
    returns = f"ret {operation.returns} {result}" if operation.returns != "void" else "ret void"
    head = f"define internal {operation.returns} {symbol(operation.name)}({parameters})"
    lines = [f"{head} {attributes} {{", *body.lines, f"  {returns}", "}"]
    return Definition("\n".join(lines), frozenset(body.declarations))
