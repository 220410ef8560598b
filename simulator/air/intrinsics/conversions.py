"""`air.convert`: between integers and floating-point types.

LLVM does not define floats out of an integer's range. Here they saturate, as on Apple's GPUs, and NaN becomes 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from .body import Body, suffix
from .operation import Operation

_SIZE = {"half": 2, "bfloat": 2, "float": 4}


def convert(body: Body, operation: Operation) -> str:
    """`air.convert.TO.TYPE.FROM.TYPE`: the kinds are f (floating point), s (signed) and u (unsigned)."""
    _, to_kind, from_kind, *_ = operation.words  # a rounding mode may follow, which integers do not need
    target, source = operation.result.element, operation.argument(0).element

    def scalar(operands: Sequence[str]) -> str:
        return _scalar(body, to_kind, target, from_kind, source, operands[0])

    return body.elements(operation.returns, operation.types, scalar)


def _scalar(body: Body, to_kind: str, target: str, from_kind: str, source: str, operand: str) -> str:
    if to_kind == from_kind == "f":
        return _float_to_float(body, target, source, operand)
    if to_kind == "f":
        return body.value(f"{'sitofp' if from_kind == 's' else 'uitofp'} {source} {operand} to {target}")
    if from_kind == "f":
        if target == "i1":
            return body.value(f"fcmp une {source} {operand}, 0.0")
        if source == "bfloat":
            operand, source = body.widened(operand, source), "float"
        return body.call(target, f"llvm.fpto{to_kind}i.sat.{target}.{suffix(source)}", (source, operand))
    return _integer_to_integer(body, target, from_kind, source, operand)


def _float_to_float(body: Body, target: str, source: str, operand: str) -> str:
    if target == source:
        return operand
    if _SIZE[target] > _SIZE[source]:
        return body.value(f"fpext {source} {operand} to {target}")
    # There is no instruction between half and bfloat; both are exact in float.
    return body.value(f"fptrunc float {body.widened(operand, source)} to {target}")


def _integer_to_integer(body: Body, target: str, from_kind: str, source: str, operand: str) -> str:
    wide, narrow = int(target[1:]), int(source[1:])
    if wide == narrow:
        return operand
    if target == "i1":
        return body.value(f"icmp ne {source} {operand}, 0")
    if wide < narrow:
        return body.value(f"trunc {source} {operand} to {target}")
    return body.value(f"{'sext' if from_kind == 's' else 'zext'} {source} {operand} to {target}")
