"""Definitions of the `air.*` operations in LLVM assembly, which Apple implements in hardware or a closed library.

There is a module for each kind of operation. Each writes the body of a function that is inlined into the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..llvm_text import symbol
from . import atomics, conversions, copies, integers, lanes, mathematics, matrices
from .accuracy import Perturbation
from .body import Body
from .operation import Operation
from .variant import PLAIN, Variant

__all__ = [
    "PLAIN",
    "Definition",
    "Operation",
    "Perturbation",
    "UnknownOperationError",
    "Variant",
    "define",
    "implements",
]

Writer = Callable[[Body, Operation], str]
"""Writes a body and returns the operand with the result, or an empty string."""

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
    **dict.fromkeys(copies.COPIES, copies.copy),
    "wait_simdgroup_events": copies.wait,
    "normalize_function_constant_predicate": integers.truth,
}


# function_constants.py puts its answer in place of each call.
ASKS_FOR_A_CONSTANT = "air.is_function_constant_defined"


class UnknownOperationError(ValueError):
    """The host does not implement an operation."""


@dataclass(frozen=True)
class Definition:
    """The function of an operation, and the declarations that it needs."""

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


def implements(function: str) -> bool:
    """Whether there is a definition of a function that a module declares, by its name alone."""
    operation = Operation(function, "void", ())
    defined = (
        function == ASKS_FOR_A_CONSTANT
        or operation.key in _BY_KEY
        or operation.key in integers.NAMES
        or operation.key in mathematics.NAMES
    )
    return defined or function.startswith("llvm.") or operation.key.startswith(matrices.PREFIX)


def define(operation: Operation, variant: Variant = PLAIN) -> Definition:
    """The function for an operation in a kernel of this variant.

    Raises:
        UnknownOperationError: the host does not implement it.
    """
    write = _writer(operation)
    if write is None:
        raise UnknownOperationError(operation.name)
    body = Body(variant)
    try:
        result = write(body, operation)
    except (ValueError, LookupError) as error:
        raise UnknownOperationError(f"{operation.name}: {error}") from None
    # Lanes wait by call site, so calls that communicate must not be moved or merged.
    attributes = "convergent " if re.search("airrt_simd|barrier", str(body.declarations)) else ""
    # Atomic operations call the checker themselves, so their loads and stores are not instrumented.
    calls_checker = variant.checked and operation.key == "atomic"
    attributes += "noinline nosanitize_coverage nounwind" if calls_checker else "alwaysinline nounwind"
    parameters = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(operation.types))
    returns = f"ret {operation.returns} {result}" if operation.returns != "void" else "ret void"
    head = f"define internal {operation.returns} {symbol(operation.name)}({parameters})"
    lines = [f"{head} {attributes} {{", *body.lines, f"  {returns}", "}"]
    return Definition("\n".join(lines), frozenset(body.declarations))
