"""The function tables of the Metal Shading Language specification, and programs that call each row with each type.

A row has the arguments and the result of a function as letters. `T` is the type of the table, `U` its unsigned type,
`I` int and `B` bool, each with as many elements as `T`; `&` in front passes a variable that the function sets; `t`,
`b`, `u` are scalars: an element of `T`, bool and uint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SIGNED = ("char", "short", "int", "long")
UNSIGNED = ("uchar", "ushort", "uint", "ulong")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float", "half")
BITS = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64, "ulong": 64}
WIDTHS = (1, 2, 3, 4)
_UNSIGNED_OF = {**dict(zip(SIGNED, UNSIGNED, strict=True)), **{t: t for t in UNSIGNED}}


@dataclass(frozen=True)
class Row:
    """A function of the specification.

    Attributes:
        section: the table.
        name: the function.
        arguments: letters, separated by spaces.
        result: a letter.
        types: the types that T may be.
        reference: the result for one element, from Python numbers; an integer one gets the type first.
        widths: numbers of elements; 1 is a scalar.
        values: for each argument, the numbers to call it with.
    """

    section: str
    name: str
    arguments: str
    result: str
    types: tuple[str, ...]
    reference: Callable[..., Any]
    widths: tuple[int, ...] = WIDTHS
    values: tuple[tuple[float, ...], ...] = ()

    @property
    def letters(self) -> list[str]:
        """The arguments."""
        return self.arguments.split()


def wrap(t: str, x: int) -> int:
    """`x` as an integer of type `t`."""
    x &= (1 << BITS[t]) - 1
    return x - (1 << BITS[t]) if t in SIGNED and x >> (BITS[t] - 1) else x


def bits(t: str, x: int) -> int:
    """The bits of `x`."""
    return x & ((1 << BITS[t]) - 1)


def limits(t: str) -> tuple[int, int]:
    """The least and the largest integer of type `t`."""
    return (-(1 << (BITS[t] - 1)), (1 << (BITS[t] - 1)) - 1) if t in SIGNED else (0, (1 << BITS[t]) - 1)


def _saturated(t: str, x: int) -> int:
    low, high = limits(t)
    return min(max(x, low), high)


def _rotate(t: str, x: int, n: int) -> int:
    count, width = bits(t, n) % BITS[t], BITS[t]
    return wrap(t, bits(t, x) << count | bits(t, x) >> (width - count))


def _extract(t: str, x: int, offset: int, count: int) -> int:
    field = bits(t, x) >> offset & ((1 << count) - 1)
    return field - (1 << count) if t in SIGNED and count and field >> (count - 1) else field


def _insert(t: str, x: int, y: int, offset: int, count: int) -> int:
    mask = ((1 << count) - 1) << offset
    return wrap(t, bits(t, x) & ~mask | bits(t, y) << offset & mask)


def _trailing(t: str, x: int) -> int:
    return (bits(t, x) & -bits(t, x)).bit_length() - 1 if bits(t, x) else BITS[t]


def integer_samples(t: str) -> list[tuple[int, int, int]]:
    """Arguments for integer functions."""
    low, high = limits(t)
    ordinary = [(5, 3, 2), (100, 7, 90), (high, high, high), (low, low, low), (low, high, 1), (high, low, 3), (0, 0, 1)]
    return [(wrap(t, x), wrap(t, y), wrap(t, z)) for x, y, z in [*ordinary, (high // 3, high // 5, 2)]]


_INT = "Integer Functions"
_24 = ("int", "uint")
_SMALL = ((5, 100, -7, 0, 1000, 12, 3, 8), (3, -2, 11, 7, 1000, 1, 0, 9), (1, 5, -4, 0, 6, 2, 2, 10))
_FIELD = ((0, 1, 2, 3, 4, 0, 5, 7), (8, 3, 2, 4, 1, 0, 3, 1))
INTEGER_ROWS = (
    Row(_INT, "abs", "T", "T", INTEGERS, lambda t, x: wrap(t, abs(x))),
    Row(_INT, "absdiff", "T T", "U", INTEGERS, lambda t, x, y: wrap(t, abs(x - y)) if t == "long" else abs(x - y)),
    Row(_INT, "addsat", "T T", "T", INTEGERS, lambda t, x, y: _saturated(t, x + y)),
    Row(_INT, "clamp", "T T T", "T", INTEGERS, lambda t, x, y, z: min(max(x, min(y, z)), z) if y <= z else None),
    Row(_INT, "clz", "T", "T", INTEGERS, lambda t, x: BITS[t] - bits(t, x).bit_length()),
    Row(_INT, "ctz", "T", "T", INTEGERS, _trailing),
    Row(_INT, "extract_bits", "T u u", "T", INTEGERS, _extract, values=((), *_FIELD)),
    Row(_INT, "hadd", "T T", "T", INTEGERS, lambda t, x, y: (x + y) >> 1),
    Row(_INT, "insert_bits", "T T u u", "T", INTEGERS, _insert, values=((), (), *_FIELD)),
    Row(_INT, "mad24", "T T T", "T", _24, lambda t, x, y, z: wrap(t, x * y + z), values=_SMALL),
    Row(_INT, "madhi", "T T T", "T", INTEGERS, lambda t, x, y, z: wrap(t, (x * y >> BITS[t]) + z)),
    Row(_INT, "madsat", "T T T", "T", INTEGERS, lambda t, x, y, z: _saturated(t, x * y + z)),
    Row(_INT, "max", "T T", "T", INTEGERS, lambda t, x, y: max(x, y)),
    Row(_INT, "max3", "T T T", "T", INTEGERS, lambda t, *x: max(x)),
    Row(_INT, "median3", "T T T", "T", INTEGERS, lambda t, *x: sorted(x)[1]),
    Row(_INT, "min", "T T", "T", INTEGERS, lambda t, x, y: min(x, y)),
    Row(_INT, "min3", "T T T", "T", INTEGERS, lambda t, *x: min(x)),
    Row(_INT, "mul24", "T T", "T", _24, lambda t, x, y: wrap(t, x * y), values=_SMALL),
    Row(_INT, "mulhi", "T T", "T", INTEGERS, lambda t, x, y: x * y >> BITS[t]),
    Row(_INT, "popcount", "T", "T", INTEGERS, lambda t, x: bits(t, x).bit_count()),
    Row(_INT, "reverse_bits", "T", "T", INTEGERS, lambda t, x: wrap(t, int(f"{bits(t, x):0{BITS[t]}b}"[::-1], 2))),
    Row(_INT, "rhadd", "T T", "T", INTEGERS, lambda t, x, y: (x + y + 1) >> 1),
    Row(_INT, "rotate", "T T", "T", INTEGERS, _rotate),
    Row(_INT, "subsat", "T T", "T", INTEGERS, lambda t, x, y: _saturated(t, x - y)),
)

_COMMON, _REAL, _RELATION, _GEOMETRY = (
    "Common Functions",
    "Math Functions",
    "Relational Functions",
    "Geometric Functions",
)
FLOAT_SAMPLES = (
    (0.5, -1.25, 2.0, 3.75, -0.375, 0.0, 10.5, -2.0),
    (1.5, 0.25, -3.0, 2.0, -0.125, 4.0, 0.5, -1.0),
    (0.25, 2.0, 1.0, -0.5, 3.0, 0.75, -4.0, 6.0),
)
_POSITIVE = ((0.5, 1.25, 2.0, 3.75, 0.375, 8.0, 10.5, 1.0), FLOAT_SAMPLES[1])
_UNIT = ((0.5, -0.25, 0.9, 0.0, -0.375, 0.75, 0.125, -0.5),)
_FROM_ONE = ((1.0, 1.25, 2.0, 3.75, 1.375, 8.0, 10.5, 5.0),)
_NUMBERS = (
    (0.5, math.nan, math.inf, -math.inf, -0.0, 0.0, 10.5, -2.0),
    (1.5, 0.25, math.nan, 2.0, -0.125, 4.0, 0.5, 1.0),
)
_EDGES = ((0.0, 0.25, -1.0, -0.5, 1.0, 0.5, -4.0, 2.0), (1.0, 2.0, 1.0, 0.5, 3.0, 0.75, 4.0, 6.0))


def _unary(name: str, reference: Callable[[float], float], values: Sequence[tuple[float, ...]] = FLOAT_SAMPLES) -> Row:
    return Row(_REAL, name, "T", "T", FLOATS, reference, values=tuple(values[:1]))


def _binary(name: str, reference: Callable[[float, float], float], values: Any = FLOAT_SAMPLES) -> Row:
    return Row(_REAL, name, "T T", "T", FLOATS, reference, values=tuple(values[:2]))


def _smooth(low: float, high: float, x: float) -> float:
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def _even(x: float) -> float:
    return float(round(x))


def _away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


FLOAT_ROWS = (
    Row(_COMMON, "clamp", "T T T", "T", FLOATS, lambda x, y, z: min(max(x, y), z), values=(FLOAT_SAMPLES[0], *_EDGES)),
    Row(_COMMON, "mix", "T T T", "T", FLOATS, lambda x, y, a: x + (y - x) * a, values=(*FLOAT_SAMPLES[:2], _UNIT[0])),
    Row(_COMMON, "saturate", "T", "T", FLOATS, lambda x: min(max(x, 0), 1), values=FLOAT_SAMPLES[:1]),
    Row(_COMMON, "sign", "T", "T", FLOATS, lambda x: (x > 0) - (x < 0), values=FLOAT_SAMPLES[:1]),
    Row(_COMMON, "smoothstep", "T T T", "T", FLOATS, _smooth, values=(*_EDGES, FLOAT_SAMPLES[0])),
    Row(_COMMON, "step", "T T", "T", FLOATS, lambda edge, x: float(x >= edge), values=FLOAT_SAMPLES[:2]),
    *(_unary(name, getattr(math, name)) for name in ("atan", "asinh", "sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *(_unary(name, getattr(math, name), _UNIT) for name in ("acos", "asin", "atanh")),
    *(_unary(name, getattr(math, name), _POSITIVE) for name in ("log", "log2", "log10", "sqrt")),
    _unary("acosh", math.acosh, _FROM_ONE),
    _unary("ceil", math.ceil),
    _unary("floor", math.floor),
    _unary("trunc", math.trunc),
    _unary("rint", _even),
    _unary("round", _away),
    _unary("fabs", abs),
    _unary("abs", abs),
    _unary("exp", math.exp),
    _unary("exp2", lambda x: 2.0**x),
    _unary("exp10", lambda x: 10.0**x, _UNIT),
    _unary("fract", lambda x: x - math.floor(x)),
    _unary("rsqrt", lambda x: 1 / math.sqrt(x), _POSITIVE),
    _unary("sinpi", lambda x: math.sin(math.pi * math.fmod(x, 2))),
    _unary("cospi", lambda x: math.cos(math.pi * math.fmod(x, 2))),
    _unary("tanpi", lambda x: math.tan(math.pi * x), ((0.45, -0.25, 0.75, 0.0, -0.375, 0.125, 1.25, -1.0),)),
    _binary("atan2", math.atan2),
    _binary("copysign", math.copysign),
    _binary("divide", lambda x, y: x / y),
    _binary("fdim", lambda x, y: max(x - y, 0)),
    _binary("fmax", max),
    _binary("fmin", min),
    _binary("max", max),
    _binary("min", min),
    _binary("fmod", math.fmod),
    _binary("pow", math.pow, _POSITIVE),
    _binary("powr", math.pow, _POSITIVE),
    *(Row(_REAL, f, "T T T", "T", FLOATS, lambda *x: max(x), values=FLOAT_SAMPLES) for f in ("fmax3", "max3")),
    *(Row(_REAL, f, "T T T", "T", FLOATS, lambda *x: min(x), values=FLOAT_SAMPLES) for f in ("fmin3", "min3")),
    *(
        Row(_REAL, f, "T T T", "T", FLOATS, lambda *x: sorted(x)[1], values=FLOAT_SAMPLES)
        for f in ("fmedian3", "median3")
    ),
    Row(_REAL, "fma", "T T T", "T", FLOATS, lambda x, y, z: x * y + z, values=FLOAT_SAMPLES),
    Row(_REAL, "frexp", "T &I", "T", FLOATS, lambda x: math.frexp(x), values=FLOAT_SAMPLES[:1]),
    Row(_REAL, "ilogb", "T", "I", FLOATS, lambda x: math.frexp(x)[1] - 1, values=_POSITIVE[:1]),
    Row(
        _REAL,
        "ldexp",
        "T I",
        "T",
        FLOATS,
        lambda x, k: x * 2.0**k,
        values=(FLOAT_SAMPLES[0], (1, -2, 3, 0, 2, 1, -1, 2)),
    ),
    Row(_REAL, "modf", "T &T", "T", FLOATS, math.modf, values=FLOAT_SAMPLES[:1]),
    Row(_REAL, "sincos", "T &T", "T", FLOATS, lambda x: (math.sin(x), math.cos(x)), values=FLOAT_SAMPLES[:1]),
    _binary("nextafter", lambda x, y: x),  # within the tolerance; test_metal_language.py has the exact values
    Row(_RELATION, "isfinite", "T", "B", FLOATS, math.isfinite, values=_NUMBERS[:1]),
    Row(_RELATION, "isinf", "T", "B", FLOATS, math.isinf, values=_NUMBERS[:1]),
    Row(_RELATION, "isnan", "T", "B", FLOATS, math.isnan, values=_NUMBERS[:1]),
    Row(_RELATION, "isnormal", "T", "B", FLOATS, lambda x: math.isfinite(x) and x != 0, values=_NUMBERS[:1]),
    Row(_RELATION, "isordered", "T T", "B", FLOATS, lambda x, y: x == x and y == y, values=_NUMBERS),
    Row(_RELATION, "isunordered", "T T", "B", FLOATS, lambda x, y: x != x or y != y, values=_NUMBERS),
    Row(_RELATION, "signbit", "T", "B", FLOATS, lambda x: math.copysign(1, x) < 0, values=(FLOAT_SAMPLES[0],)),
    Row(
        *(_RELATION, "select", "T T B", "T", FLOATS, lambda x, y, c: y if c else x),
        values=(*FLOAT_SAMPLES[:2], (0, 1, 1, 0, 1, 0, 0, 1)),
    ),
)


def vector(t: str, width: int) -> str:
    """The name of a type with `width` elements."""
    return t if width == 1 else f"{t}{width}"


def type_of(letter: str, t: str, width: int) -> str:
    """The type that a letter means."""
    element = {"T": t, "U": _UNSIGNED_OF.get(t, t), "I": "int", "B": "bool"}.get(letter)
    return vector(element, width) if element else {"t": t, "b": "bool", "u": "uint"}[letter]


@dataclass(frozen=True)
class Call:
    """A row with a type and a number of elements."""

    row: Row
    type: str
    width: int

    def samples(self, position: int) -> Sequence[float]:
        """The numbers for an argument; each call takes them in another order for each thread."""
        given = self.row.values[position] if position < len(self.row.values) else ()
        return given or [sample[position] for sample in integer_samples(self.type)]

    def inputs(self, thread: int, element: int) -> list[float]:
        """The arguments of an element, without those that the function sets."""
        inputs = []
        for position, letter in enumerate(self.row.letters):
            if not letter.startswith("&"):
                index = sample_index(thread, element if letter in "TUIB" else 0)
                inputs.append(self.samples(position)[index])
        return inputs

    @property
    def outputs(self) -> int:
        """How many numbers an element gives: the result, and what the function sets."""
        return 1 + sum(letter.startswith("&") for letter in self.row.letters)

    def source(self, number: int) -> tuple[str, str]:
        """The constants of the call, and its statements."""
        constants, statements, arguments, outputs = [], [], [], ["result"]
        for position, letter in enumerate(self.row.letters):
            kind, name = letter.removeprefix("&"), f"a{position}"
            of_type = type_of(kind, self.type, self.width)
            arguments.append(name)
            if letter.startswith("&"):
                statements.append(f"{of_type} {name};")
                outputs.append(name)
                continue
            element = type_of(kind, self.type, 1)
            literals = ", ".join(literal(element, x) for x in self.samples(position))
            constants.append(f"constant {element} c{number}_{position}[] = {{{literals}}};\n")
            count = self.width if kind in "TUIB" else 1
            values = ", ".join(f"c{number}_{position}[({STEP} * {e} + i) % {SAMPLES}]" for e in range(count))
            statements.append(f"{of_type} {name} = {of_type}({values});")
        result = type_of(self.row.result, self.type, self.width)
        statements.append(f"auto result = {self.row.name}({', '.join(arguments)});")
        message = f"the result of {self.row.name} is {result}"
        statements.append(f'static_assert(is_same<decltype(result), {result}>::value, "{message}");')
        for output in outputs:
            elements = [f"{output}[{e}]" for e in range(self.width)] if self.width > 1 else [output]
            statements += [f"out[at++] = {OUT[self.type]}({element});" for element in elements]
        return "".join(constants), f"  {{ {' '.join(statements)} }}\n"


SAMPLES = 8
STEP = 3
OUT = {**{t: t for t in FLOATS}, **dict.fromkeys(INTEGERS, "long"), "ulong": "ulong"}
"""The type in which a program of each type writes its results."""


def sample_index(thread: int, element: int) -> int:
    """Which sample an element of a thread gets."""
    return (STEP * element + thread) % SAMPLES


def literal(t: str, x: float) -> str:
    """A number in Metal."""
    if t in INTEGERS or t == "bool":
        low = limits(t)[0] if t in SIGNED else 0
        return f"{t}({low + 1}{'l' if t == 'long' else ''} - 1)" if x == low < 0 else f"{int(x)}{_SUFFIX.get(t, '')}"
    special = {math.inf: "INFINITY", -math.inf: "-INFINITY"}.get(x, "NAN" if x != x else f"{float(x)!r}f")
    return f"{t}({special})"


_SUFFIX = {"long": "l", "ulong": "ul", "uint": "u"}


def calls_of(rows: Sequence[Row], t: str) -> list[Call]:
    """The calls of all functions that take type `t`, with each number of elements."""
    return [Call(row, t, width) for row in rows if t in row.types for width in row.widths]


def program(calls: Sequence[Call]) -> str:
    """A kernel `k` that makes the calls, in each of SAMPLES threads.

    A thread writes each element of each result, and of what is set, to `out`. Static assertions compare the types of
    the results with the table.
    """
    sources = [call.source(number) for number, call in enumerate(calls)]
    size = sum(call.outputs * call.width for call in calls)
    return (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        + "".join(constants for constants, _ in sources)
        + f"kernel void k(device {OUT[calls[0].type]}* out, uint i [[thread_position_in_grid]]) {{\n"
        + f"  uint at = i * {size};\n{''.join(statements for _, statements in sources)}}}\n"
    )
