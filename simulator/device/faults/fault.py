"""A fault, and its text form, which settings contain and people write."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...errors import SimulatorError

TERM = re.compile(r"\s*(\w+)(?:\(([^()]*)\))?\s*")
EXAMPLE = "aten::exp: values when offset(self) and dtype(self, float32)"

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Term:
    """A word with its arguments: names of the overload's arguments, numbers, dtypes."""

    name: str
    arguments: tuple[Value, ...] = ()

    def __str__(self) -> str:
        """The text form: above(self, 1024)."""
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name


@dataclass(frozen=True)
class Fault:
    """A fault of one overload.

    Attributes:
        overload: with its namespace, "aten::exp.out". A fault in only the gradient or only the in-place or out= form
            of an operator names that overload.
        corruption: what the kernel does.
        conditions: that a call must meet; empty for every call.
    """

    overload: str
    corruption: Term
    conditions: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """The text that `parse` reads."""
        when = f" when {' and '.join(map(str, self.conditions))}" if self.conditions else ""
        return f"{self.overload}: {self.corruption}{when}"

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The fault that a text describes. Raises SimulatorError that describes the mistake in the text."""
        overload, colon, rest = text.strip().partition(": ")
        if not colon or not overload.startswith("aten::"):
            raise SimulatorError(f"fault {text!r}: write it as {EXAMPLE!r}")
        corruption, when, conditions = rest.partition(" when ")
        parts = conditions.split(" and ") if when else []
        return cls(overload, _term(corruption, text), tuple(_term(part, text) for part in parts))


def _term(written: str, text: str) -> Term:
    match = TERM.fullmatch(written)
    if match is None:
        raise SimulatorError(f"fault {text!r}: {written!r} is not a word with arguments; write it as {EXAMPLE!r}")
    arguments = match[2].split(",") if match[2] else []
    return Term(match[1], tuple(_value(argument.strip()) for argument in arguments))


def _value(written: str) -> Value:
    """A number, True, False or None; anything else is a name."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return written
    return value if isinstance(value, (int, float)) or value is None else written
