"""Exchanges between the lanes of a SIMD group, and barriers: functions of runtime/lanes.cpp."""

from __future__ import annotations

from collections.abc import Sequence

from .body import SUFFIX, Body
from .operation import Operation

_FOLDS = ("sum", "product", "min", "max", "and", "or", "xor")
_SCANS = ("inclusive_sum", "exclusive_sum", "inclusive_product", "exclusive_product")
_MOVES = (
    *("shuffle", "broadcast", "broadcast_first", "shuffle_xor", "shuffle_up", "shuffle_down"),
    *("shuffle_rotate_up", "shuffle_rotate_down", "shuffle_and_fill_up", "shuffle_and_fill_down"),
)
BY_TYPE = frozenset({f"simd_{name}" for name in (*_FOLDS, *_MOVES)} | {f"simd_prefix_{name}" for name in _SCANS})
BARRIERS = {"wg": "airrt_threadgroup_barrier", "simdgroup": "airrt_simdgroup_barrier"}
VOTES = frozenset({"simd_any", "simd_all"})
MASKS = frozenset({"simd_ballot", "simd_active_threads_mask"})
SIMD_WIDTH = "32"


def lanes(body: Body, operation: Operation) -> str:
    """One of BY_TYPE, element by element."""
    element = operation.result.element
    runtime_type = SUFFIX.get(element) or f"{operation.sign or 'u'}{element[1:]}"

    def scalar(operands: Sequence[str]) -> str:
        kinds = (operation.argument(i).element for i in range(len(operation.types)))
        return body.call(element, f"airrt_{operation.key}_{runtime_type}", *zip(kinds, operands, strict=True))

    return body.elements(operation.returns, operation.types, scalar)


def vote(body: Body, operation: Operation) -> str:
    """`air.simd_any` and `air.simd_all`."""
    return body.call("i1", f"airrt_{operation.key}", ("i1", "%a0"))


def is_first(body: Body, operation: Operation) -> str:
    """`air.simd_is_first`."""
    return body.call("i1", "airrt_simd_is_first")


def mask(body: Body, operation: Operation) -> str:
    """One of MASKS: a bit for each lane."""
    return body.call("i64", f"airrt_{operation.key}", *(("i1", f"%a{i}") for i in range(len(operation.types))))


def simd_width(body: Body, operation: Operation) -> str:
    """`air.get_simdgroup_size`."""
    return SIMD_WIDTH


def barrier(body: Body, operation: Operation) -> str:
    """`air.wg.barrier` and `air.simdgroup.barrier`."""
    body.run(BARRIERS[operation.key], ("i32", "%a0"))
    return ""
