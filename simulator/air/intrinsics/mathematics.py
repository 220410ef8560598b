"""Floating-point operations: instructions of the host, and functions of the C library.

half and bfloat are computed in float and rounded once, so results are the nearest except for rare ties. A
`Perturbation` moves results within Apple's error bounds (accuracy.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .accuracy import FAST_BY_FORMULA, FAST_GROWING, SINGLE_ULPS
from .body import Body, suffix
from .operation import Operation

# Exact in every type: LLVM's intrinsics.
_EXACT = {
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "round": "round",
    "fmax": "maxnum",
    "fmin": "minnum",
    "copysign": "copysign",
}
# Rounded once: float functions of the C library, or of runtime/mathematics.cpp.
_ROUNDED = {
    **{
        name: f"{name}f"
        for name in (
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
            *("exp", "exp2", "exp10", "log", "log2", "log10", "pow", "atan2", "fmod", "fdim"),
        )
    },
    "powr": "powf",
    **{name: f"airrt_{name}" for name in ("sinpi", "cospi", "tanpi", "rsqrt", "divide", "recip")},
    "sqrt": "llvm.sqrt.f32",
    "fma": "llvm.fma.f32",
}
# These depend on the spacing of the type: a function for each type in runtime/mathematics.cpp.
_BY_TYPE = frozenset({"fract", "nextafter"})
NAMES = frozenset({*_EXACT, *_ROUNDED, *_BY_TYPE, "clamp", "saturate", "sign", "ldexp"})


def floating_point(body: Body, operation: Operation) -> str:
    """One of NAMES, element by element."""
    write = _SCALARS.get(operation.key, _rounded)

    def scalar(operands: Sequence[str]) -> str:
        return write(body, operation, operation.result.element, operands)

    return body.elements(operation.returns, operation.types, scalar)


def _exact(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    wide = [("float", body.widened(operand, kind)) for operand in operands]
    return body.narrowed(body.call("float", f"llvm.{_EXACT[operation.key]}.f32", *wide), kind)


def _rounded(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    wide = [("float", body.widened(operand, kind)) for operand in operands]
    result = body.call("float", _ROUNDED[operation.key], *wide)
    return _finished(body, operation, operation.key, result, wide[0][1])


def _finished(body: Body, operation: Operation, name: str, wide: str, argument: str) -> str:
    """Convert the float result `wide` of the function `name` to the operation's type, or move it within its bound.

    `argument` is its first argument, as a float.
    """
    kind = operation.result.element
    perturbation = body.variant.perturbation
    if perturbation is None or name not in SINGLE_ULPS or kind == "bfloat":
        return body.narrowed(wide, kind)
    number = perturbation.seed * len(SINGLE_ULPS) + sorted(SINGLE_ULPS).index(name)
    values = ("float", wide), ("float", argument), ("i32", str(number % 2**31))
    if kind == "half":
        return body.call(kind, "airrt_perturbed_f16", *values)
    if operation.is_fast and name in FAST_BY_FORMULA:
        return body.call(kind, f"airrt_perturbed_fast_{name}", ("float", argument), values[2])
    bound = str(SINGLE_ULPS[name])
    if operation.is_fast and name in FAST_GROWING:
        bound = body.call("i32", "airrt_fast_exp_ulps", ("float", argument))
    return body.call(kind, "airrt_perturbed_f32", *values, ("i32", bound))


def _by_type(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    return body.call(kind, f"airrt_{operation.key}_{suffix(kind)}", *((kind, operand) for operand in operands))


def _clamp(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    value, low, high = (("float", body.widened(operand, kind)) for operand in operands)
    raised = body.call("float", "llvm.maxnum.f32", value, low)
    return body.narrowed(body.call("float", "llvm.minnum.f32", ("float", raised), high), kind)


def _saturate(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    raised = body.call("float", "llvm.maxnum.f32", ("float", body.widened(operands[0], kind)), ("float", "0.0"))
    return body.narrowed(body.call("float", "llvm.minnum.f32", ("float", raised), ("float", "1.0")), kind)


def _sign(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    return body.narrowed(body.call("float", "airrt_sign", ("float", body.widened(operands[0], kind))), kind)


def _ldexp(body: Body, operation: Operation, kind: str, operands: Sequence[str]) -> str:
    value, exponent = body.widened(operands[0], kind), operands[1]
    return body.narrowed(body.call("float", "llvm.ldexp.f32.i32", ("float", value), ("i32", exponent)), kind)


_SCALARS: dict[str, Callable[[Body, Operation, str, Sequence[str]], str]] = {
    **dict.fromkeys(_EXACT, _exact),
    **dict.fromkeys(_BY_TYPE, _by_type),
    "clamp": _clamp,
    "saturate": _saturate,
    "sign": _sign,
    "ldexp": _ldexp,
}


def sine_and_cosine(body: Body, operation: Operation) -> str:
    """`air.sincos`: returns the sine and writes the cosine through its second argument."""
    kind = operation.result.element
    if operation.result.width:
        raise ValueError("a vector")
    argument = body.widened("%a0", kind)
    sine, cosine = (
        _finished(body, operation, name, body.call("float", _ROUNDED[name], ("float", argument)), argument)
        for name in ("sin", "cos")
    )
    body.line(f"store {kind} {cosine}, {operation.types[1]} %a1")
    return sine


def dot(body: Body, operation: Operation) -> str:
    """`air.dot`: the products are added in order, each fused with its addition."""
    width, kind = operation.argument(0)
    total = ""
    for index in range(width):
        elements = (body.value(f"extractelement {operation.types[i]} %a{i}, i64 {index}") for i in (0, 1))
        x, y = (body.widened(element, kind) for element in elements)
        if total:
            total = body.call("float", "llvm.fma.f32", ("float", x), ("float", y), ("float", total))
        else:
            total = body.value(f"fmul float {x}, {y}")
    return body.narrowed(total, kind)
