"""Operations on integers: minimum and maximum, bits, products, and reductions of bool vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .body import Body
from .operation import Operation

# Operations that are an intrinsic of LLVM; {s} is the sign.
_ONE_CALL = {
    "min": "{s}min",
    "max": "{s}max",
    "add_sat": "{s}add.sat",
    "sub_sat": "{s}sub.sat",
    "popcount": "ctpop",
    "reverse_bits": "bitreverse",
}
NAMES = frozenset({*_ONE_CALL, "abs", "clamp", "clz", "ctz", "mul_hi", "mad_hi", "absdiff", "rotate"})


def integer(body: Body, operation: Operation) -> str:
    """One of NAMES, element by element."""
    write = _SCALARS.get(operation.key, _one_call)

    def scalar(operands: Sequence[str]) -> str:
        return write(body, operation, operation.result.element, operands)

    return body.elements(operation.returns, operation.types, scalar)


def _one_call(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    function = _ONE_CALL[operation.key].format(s=operation.sign)
    return body.call(kind, f"llvm.{function}.{kind}", *((kind, operand) for operand in operands))


def _abs(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    if operation.sign == "u":
        return operands[0]
    return body.call(kind, f"llvm.abs.{kind}", (kind, operands[0]), ("i1", "false"))


def _clamp(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    value, low, high = operands
    raised = body.call(kind, f"llvm.{operation.sign}max.{kind}", (kind, value), (kind, low))
    return body.call(kind, f"llvm.{operation.sign}min.{kind}", (kind, raised), (kind, high))


def _count_zeros(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    function = {"clz": "ctlz", "ctz": "cttz"}[operation.key]
    return body.call(kind, f"llvm.{function}.{kind}", (kind, operands[0]), ("i1", "false"))


def _high_half(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    """The upper half of a product, to which `mad_hi` adds its third operand."""
    bits = int(kind[1:])
    wide = f"i{2 * bits}"
    extend = "sext" if operation.sign == "s" else "zext"
    x, y = (body.value(f"{extend} {kind} {operand} to {wide}") for operand in operands[:2])
    product = body.value(f"mul {wide} {x}, {y}")
    high = body.value(f"trunc {wide} {body.value(f'lshr {wide} {product}, {bits}')} to {kind}")
    return high if operation.key == "mul_hi" else body.value(f"add {kind} {high}, {operands[2]}")


def _difference(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    pair = [(kind, operand) for operand in operands]
    greater = body.call(kind, f"llvm.{operation.sign}max.{kind}", *pair)
    lesser = body.call(kind, f"llvm.{operation.sign}min.{kind}", *pair)
    return body.value(f"sub {kind} {greater}, {lesser}")


def _rotate(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    value, by = operands
    return body.call(kind, f"llvm.fshl.{kind}", (kind, value), (kind, value), (kind, by))


_SCALARS: dict[str, Callable[[Body, Operation, str, Sequence[str]], str]] = {
    "abs": _abs,
    "clamp": _clamp,
    "clz": _count_zeros,
    "ctz": _count_zeros,
    "mul_hi": _high_half,
    "mad_hi": _high_half,
    "absdiff": _difference,
    "rotate": _rotate,
}


def all_or_any(body: Body, operation: Operation) -> str:
    """`air.all` and `air.any` of a bool vector."""
    width, element = operation.argument(0)
    if element != "i1":
        raise ValueError(f"a vector of {element}")
    function = "and" if operation.key == "all" else "or"
    return body.call("i1", f"llvm.vector.reduce.{function}.v{width}i1", (operation.types[0], "%a0"))


def truth(body: Body, operation: Operation) -> str:
    """`air.normalize_function_constant_predicate`: 1 for any number other than 0."""
    return body.value(f"zext i1 {body.value(f'icmp ne {operation.types[0]} %a0, 0')} to {operation.returns}")
