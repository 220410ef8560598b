"""Writes the body of a function in LLVM assembly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..llvm_text import vector_type
from .variant import Variant

Typed = tuple[str, str]
"""A type and an operand."""

SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32"}
"""Suffixes of floating-point types in the names of LLVM's intrinsics."""


def suffix(scalar: str) -> str:
    """The suffix of a scalar type in the names of LLVM's intrinsics: `float` is f32, `i16` is itself."""
    return SUFFIX.get(scalar, scalar)


class Body:
    """The instructions of a function, and the declarations that it needs.

    `variant` is what the kernel is built for.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._values = 0

    def value(self, instruction: str) -> str:
        """Append an instruction; returns the operand with its result."""
        self._values += 1
        self.lines.append(f"  %t{self._values} = {instruction}")
        return f"%t{self._values}"

    def line(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def _call(self, returns: str, function: str, arguments: Sequence[Typed]) -> str:
        self.declarations.add(f"declare {returns} @{function}({', '.join(kind for kind, _ in arguments)})")
        return f"call {returns} @{function}({', '.join(f'{kind} {operand}' for kind, operand in arguments)})"

    def call(self, returns: str, function: str, *arguments: Typed) -> str:
        """Call a function of the runtime, of LLVM or of the C library; returns the operand with its result."""
        return self.value(self._call(returns, function, arguments))

    def run(self, function: str, *arguments: Typed) -> None:
        """Call a function without a result."""
        self.line(self._call("void", function, arguments))

    def elements(self, returns: str, types: Sequence[str], scalar: Callable[[Sequence[str]], str]) -> str:
        """Apply `scalar` to the operands of each element, or of the only one.

        An argument that is not a vector of the result's width is used for every element.
        """
        width, element = vector_type(returns)
        if not width:
            return scalar([f"%a{i}" for i in range(len(types))])
        result = "poison"
        for index in range(width):
            operands = [
                self.value(f"extractelement {kind} %a{i}, i64 {index}")
                if vector_type(kind).width == width
                else f"%a{i}"
                for i, kind in enumerate(types)
            ]
            result = self.value(f"insertelement {returns} {result}, {element} {scalar(operands)}, i64 {index}")
        return result

    def widened(self, operand: str, scalar: str) -> str:
        """A floating-point operand as a float."""
        return operand if scalar == "float" else self.value(f"fpext {scalar} {operand} to float")

    def narrowed(self, operand: str, scalar: str) -> str:
        """A float rounded to a floating-point type."""
        return operand if scalar == "float" else self.value(f"fptrunc float {operand} to {scalar}")
