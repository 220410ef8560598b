"""`simdgroup_matrix`: 8x8 matrices over the lanes of a SIMD group.

In AIR a matrix is a vector of 64. Elements 0 and 1 are the two that the lane holds (`thread_elements`), the others are
never read. runtime/matrices.cpp assigns elements to lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from ..llvm_text import vector_type
from .body import Body
from .operation import Operation

PREFIX = "simdgroup_matrix_8x8_"


def matrix(body: Body, operation: Operation) -> str:
    """One of the operations whose names begin with PREFIX."""
    write = _OPERATIONS.get(operation.key.removeprefix(PREFIX))
    if write is None:
        raise ValueError("an unknown operation on matrices")
    return write(body, operation)


def _packed(body: Body, kind: str, first: str, second: str) -> str:
    element = vector_type(kind).element
    half = body.value(f"insertelement {kind} poison, {element} {first}, i64 0")
    return body.value(f"insertelement {kind} {half}, {element} {second}, i64 1")


def _filled(body: Body, operation: Operation) -> str:
    value = body.narrowed(body.widened("%a0", operation.types[0]), operation.result.element)
    return _packed(body, operation.returns, value, value)


def _diagonal(body: Body, operation: Operation) -> str:
    value = body.widened("%a0", operation.types[0])
    elements = (body.call("float", "airrt_matrix_diagonal", ("float", value), ("i32", str(k))) for k in (0, 1))
    return _packed(body, operation.returns, *(body.narrowed(e, operation.result.element) for e in elements))


def _multiply_accumulate(body: Body, operation: Operation) -> str:
    parts = [
        ("float", body.widened(body.value(f"extractelement {kind} %a{i}, i64 {k}"), vector_type(kind).element))
        for i, kind in enumerate(operation.types)
        for k in (0, 1)
    ]
    pair = body.value("alloca [2 x float]")
    body.run("airrt_matrix_multiply_accumulate", *parts, ("ptr", pair))
    places = (pair, body.value(f"getelementptr float, ptr {pair}, i64 1"))
    elements = (body.value(f"load float, ptr {place}") for place in places)
    return _packed(body, operation.returns, *(body.narrowed(e, operation.result.element) for e in elements))


def _place(body: Body, element: str, types: tuple[str, ...], first: int, k: int) -> str:
    """The address of an element of the lane; arguments from `first` on are pointer, stride, origin, transpose."""
    pointer, stride, origin, flip = (f"%a{first + i}" for i in range(4))
    x, y = (body.value(f"extractelement {types[first + 2]} {origin}, i64 {i}") for i in (0, 1))
    arguments = ("i64", stride), ("i64", x), ("i64", y), ("i1", flip), ("i32", str(k))
    offset = body.call("i64", "airrt_matrix_offset", *arguments)
    return body.value(f"getelementptr {element}, {types[first]} {pointer}, i64 {offset}")


def _load(body: Body, operation: Operation) -> str:
    element = operation.result.element
    places = [_place(body, element, operation.types, 0, k) for k in (0, 1)]
    values = [body.value(f"load {element}, {operation.types[0]} {place}") for place in places]
    return _packed(body, operation.returns, *values)


def _store(body: Body, operation: Operation) -> str:
    element = operation.argument(0).element
    for k in (0, 1):
        place = _place(body, element, operation.types, 1, k)
        value = body.value(f"extractelement {operation.types[0]} %a0, i64 {k}")
        body.line(f"store {element} {value}, {operation.types[1]} {place}")
    return ""


_OPERATIONS: dict[str, Callable[[Body, Operation], str]] = {
    "init_filled": _filled,
    "init_diag": _diagonal,
    "multiply_accumulate": _multiply_accumulate,
    "load": _load,
    "store": _store,
}
