"""Values of enumerators and integer constants: `[[buffer(kInput)]]` with `enum Buffers { kInput, kOutput };`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping

from .tokens import Tokens

_OPERATORS: dict[type[ast.operator], object] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_SCOPE = re.compile(r"\w+\s*::\s*")
_CONSTANT_WORDS = frozenset({"const", "constant", "constexpr"})


def integer_constants(tokens: Tokens) -> dict[str, int]:
    """The enumerators of a program, and the constants whose value is an expression of such numbers."""
    values: dict[str, int] = {}
    text = tokens.text
    for i, token in enumerate(text):
        if token == "enum":
            values.update(_enumerators(tokens, i, values))
        elif token == "=" and not _CONSTANT_WORDS.isdisjoint(text[max(0, i - 6) : i]) and ";" in text[i : i + 32]:
            value = evaluate(tokens.span(i + 1, text.index(";", i)), values)
            if value is not None:
                values[text[i - 1]] = value
    return values


def _enumerators(tokens: Tokens, i: int, constants: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    text, pair = tokens.text, tokens.pair
    while text[i] not in ("{", ";", "(", ")", ""):
        i += 1
    values = dict(constants)
    following, end = 0, pair[i] if text[i] == "{" else i
    while i + 1 < end:
        name = text[i + 1]
        i += 2
        if text[i] == "=":
            begin = i + 1
            while i < end and text[i] != ",":
                i = pair[i] + 1 if text[i] in ("(", "[", "{") else i + 1
            value = evaluate(tokens.span(begin, i), values)
            if value is None:
                return
            following = value
        values[name] = following
        yield name, following
        following += 1


def evaluate(expression: str, values: Mapping[str, int]) -> int | None:
    """The value of a constant expression of integers; None if it is not one, or has an unknown name."""
    words = _SCOPE.sub("", _SUFFIX.sub(r"\1", expression.strip())).replace("/", "//")
    try:
        return _value(ast.parse(words, mode="eval").body, values)
    except (SyntaxError, KeyError, TypeError, ValueError, ArithmeticError):
        return None


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if isinstance(node, ast.BinOp):
        apply = _OPERATORS[type(node.op)]
        return int(apply(_value(node.left, values), _value(node.right, values)))  # type: ignore[operator]
    raise TypeError
