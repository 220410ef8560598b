"""Defines AIR's atomic operations for NVIDIA GPUs, in LLVM assembly."""

from __future__ import annotations

import re

from ..air.intrinsics import Operation
from ..air.intrinsics.body import Body
from ..air.intrinsics.variant import PLAIN
from ..air.llvm_text import leading_type, parenthesized, split_list, symbol

_DECLARATION = re.compile(
    r'^declare (?P<returns>[^@\n]*?) ?@"?(?P<name>air\.atomic\.[\w.$]+)"?(?P<rest>\([^\n]*)$', re.MULTILINE
)
_RETURN_ATTRIBUTES = re.compile(r"^(?:(?:noundef|zeroext|signext|range\([^)]*\)) )+")
_FLOAT = {"add": "fadd", "sub": "fsub", "min": "fmin", "max": "fmax"}


def with_atomics(assembly: str) -> str:
    """The module with definitions of its declared atomic operations."""

    def defined(match: re.Match[str]) -> str:
        types = tuple(leading_type(t) for t in split_list(parenthesized(match["rest"], 0)))
        returns = leading_type(_RETURN_ATTRIBUTES.sub("", match["returns"]))
        return _definition(Operation(match["name"], returns, types))

    return _DECLARATION.sub(defined, assembly)


def _definition(operation: Operation) -> str:
    body = Body(PLAIN)
    result = _write_body(body, operation)
    formal = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(operation.types))
    head = f"define internal {operation.returns} {symbol(operation.name)}({formal}) alwaysinline nounwind {{"
    returned = f"ret {operation.returns} {result}" if operation.returns != "void" else "ret void"
    return "\n".join([head, *body.lines, f"  {returned}", "}"])


def _write_body(body: Body, operation: Operation) -> str:
    """The body of `air.atomic.SPACE.WHAT`; returns the old value."""
    _, space, what, *_ = [*operation.words, "", ""]
    if space == "fence":
        body.line('fence syncscope("device") seq_cst')
        return ""
    pointer = operation.types[0]
    if what == "cmpxchg":
        return _compare_and_exchange(body, operation)
    kind = operation.returns if what == "load" else operation.types[1]
    address = f"{pointer} %a0{'' if what in ('load', 'store') else ','}"
    order = f'syncscope("device") monotonic, align {8 if kind == "i64" else 4}'
    if what == "load":
        return body.value(f"load atomic {kind}, {address} {order}")
    if what == "store":
        body.line(f"store atomic {kind} %a1, {address} {order}")
        return ""
    name = _FLOAT.get(what, what) if kind == "float" else f"u{what}" if _is_unsigned_order(what, operation) else what
    return body.value(f"atomicrmw {name} {address} {kind} %a1 {order}")


def _is_unsigned_order(what: str, operation: Operation) -> bool:
    return what in ("min", "max") and operation.sign == "u"


def _compare_and_exchange(body: Body, operation: Operation) -> str:
    """Compare bits; the old value is returned, and written to the second argument."""
    pointer, expected_pointer, kind = operation.types[:3]
    bits = kind if kind.startswith("i") else "i32"
    expected = body.value(f"load {bits}, {expected_pointer} %a1")
    desired = "%a2" if kind == bits else body.value(f"bitcast {kind} %a2 to {bits}")
    order = 'syncscope("device") monotonic monotonic'
    pair = body.value(f"cmpxchg {pointer} %a0, {bits} {expected}, {bits} {desired} {order}")
    old = body.value(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
    body.line(f"store {bits} {old}, {expected_pointer} %a1")
    return old if kind == bits else body.value(f"bitcast {bits} {old} to {kind}")
