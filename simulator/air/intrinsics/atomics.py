"""Atomic operations. One host thread runs all items in turn, so plain loads and stores are atomic."""

from __future__ import annotations

from .body import Body
from .operation import Operation

_USES = {"load": 1, "store": 2, "xchg": 2}
"""Accesses for the checker: 1 for a load, 2 for a store, 3 for both; the result of an exchange is mostly unused."""


def atomic(body: Body, operation: Operation) -> str:
    """`air.atomic.SPACE.WHAT`: returns the old value; the memory order does not matter here."""
    _, space, what, *_ = [*operation.words, "", ""]
    if space == "fence":
        return ""
    pointer = operation.types[0]
    if body.variant.checked:
        _report_access(body, operation, what)
    if what == "load":
        return body.value(f"load {operation.returns}, {pointer} %a0")
    if what == "store":
        body.line(f"store {operation.types[1]} %a1, {pointer} %a0")
        return ""
    if what == "cmpxchg":
        return _compare_and_exchange(body, operation)
    kind = operation.types[1]
    old = body.value(f"load {kind}, {pointer} %a0")
    body.line(f"store {kind} {_combined(body, operation, what, kind, old)}, {pointer} %a0")
    return old


def _report_access(body: Body, operation: Operation, what: str) -> None:
    """Report the access to the checker."""
    kind = operation.returns if what == "load" else operation.types[2 if what == "cmpxchg" else 1]
    size = 8 if kind == "i64" else 4
    body.run("msl_atomic_access", ("ptr", "%a0"), ("i32", str(size)), ("i32", str(_USES.get(what, 3))))


def _compare_and_exchange(body: Body, operation: Operation) -> str:
    """Compare bits; the old value is returned, and written to the second argument."""
    pointer, expected_pointer, kind = operation.types[:3]
    bits = kind if kind.startswith("i") else "i32"
    old = body.value(f"load {kind}, {pointer} %a0")
    expected = body.value(f"load {bits}, {expected_pointer} %a1")
    old_bits = old if kind == bits else body.value(f"bitcast {kind} {old} to {bits}")
    same = body.value(f"icmp eq {bits} {old_bits}, {expected}")
    body.line(f"store {kind} {body.value(f'select i1 {same}, {kind} %a2, {kind} {old}')}, {pointer} %a0")
    body.line(f"store {kind} {old}, {expected_pointer} %a1")
    return old


def _combined(body: Body, operation: Operation, what: str, kind: str, old: str) -> str:
    if what == "xchg":
        return "%a1"
    if what in ("and", "or", "xor"):
        return body.value(f"{what} {kind} {old}, %a1")
    if what in ("add", "sub"):
        return body.value(f"{'f' if kind == 'float' else ''}{what} {kind} {old}, %a1")
    if what in ("min", "max"):
        function = f"llvm.{what}num.f32" if kind == "float" else f"llvm.{operation.sign}{what}.{kind}"
        return body.call(kind, function, (kind, old), (kind, "%a1"))
    raise ValueError(f"the atomic operation {what}")
