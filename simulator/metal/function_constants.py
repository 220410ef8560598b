"""Function constants: values that host code sets in a Metal program before its kernels are built."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import MetalRuntimeError, MetalValueError

_DECLARED = re.compile(
    r"(?P<head>\bconstant\b[^;{}()\[\]]*?\b(?P<name>\w+))\s*\[\[\s*function_constant\((?P<index>[^\]]*?)\)\s*\]\]\s*;"
)


@dataclass(frozen=True)
class Constant:
    """A value, as Metal source, of a constant with an index or, if that is -1, with a name."""

    index: int
    name: str
    value: str


def constants_of(values: Mapping[int | str, bool | int | float]) -> tuple[Constant, ...]:
    """Convert Python values of function constants, by index or by name.

    Raises:
        MetalValueError: a value is not a bool, int or float.
    """
    return tuple(
        Constant(key if isinstance(key, int) else -1, key if isinstance(key, str) else "", _in_metal(key, value))
        for key, value in values.items()
    )


def _in_metal(key: int | str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "NAN" if value != value else f"{'-' * (value < 0)}INFINITY"
    raise MetalValueError(f"the function constant {key!r} is a {type(value).__name__}: give a bool, an int or a float")


def specialized(source: str, constants: Sequence[Constant]) -> str:
    """Set function constants in the source; constants without a value stay undefined.

    Raises:
        MetalRuntimeError: an index in the source is not a number.
    """
    by_index = {c.index: c.value for c in constants if c.index >= 0}
    by_name = {c.name: c.value for c in constants if c.index < 0}
    defined: list[str] = []

    def with_value(declared: re.Match[str]) -> str:
        name, index = declared["name"], declared["index"].strip()
        value = by_name.get(name)
        if value is None and by_index:
            if not index.isdigit():
                raise MetalRuntimeError(f"the function constant '{name}' has the index {index}; write it as a number")
            value = by_index.get(int(index))
        if value is None:
            return declared[0]
        defined.append(name)
        # Keep the line numbers.
        return f"{declared['head']} = {value};" + "\n" * (declared[0].count("\n") - declared["head"].count("\n"))

    text = _DECLARED.sub(with_value, source)
    if not defined:
        return text
    alternatives = "|".join(map(re.escape, defined))
    return re.sub(rf"\bis_function_constant_defined\(\s*(?:{alternatives})\s*\)", "true", text)
