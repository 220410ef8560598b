"""What an expression of host code holds, as far as the function around it says so: a tensor, a number, a string.

Declarations are read, not compiled. What they leave open is unknown, and nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import Literal

from .argument_matching import split_arguments

Kind = Literal["tensor", "number", "array", "errors", "unknown"]

METAL_TYPES = ("float2", "half2", "float", "half", "bfloat", "long", "int", "short", "char", "uchar", "bool")
_UNSIGNED = ("ushort", "uint", "ulong")
_SOME_TYPE = rf"(?:{'|'.join((*METAL_TYPES, *_UNSIGNED))})"
_TYPE_NAME = re.compile(r"(?:mps::)?scalarToMetalTypeString\(")
_ANYTHING = r"\w+"
_MOST_NAMES = 64
_DEPTH = 6

_NUMBERS = {
    **dict.fromkeys(("int", "int32_t"), "int"),
    **dict.fromkeys(("uint32_t", "unsigned"), "uint"),
    **dict.fromkeys(("int64_t", "long"), "long"),
    **dict.fromkeys(("uint64_t", "size_t", "NSUInteger"), "ulong"),
    **dict.fromkeys(("float", "double", "bool"), None),
}
_TYPE = r"(?:(?:static|constexpr|const|inline)\s+)*(?P<type>(?:\w+::)*\w+(?:<[^;(){}]*?>)?)(?:\s+const)?"
_CONTAINER = re.compile(r"^(?:std::(?:array|vector)|c10::ArrayRef|ArrayRef)<\s*(?:at::)?(?P<element>\w+)")
_TENSOR_METHOD = re.compile(
    r"\.(?:contiguous|view|to|select|mT|expand|as_strided|reshape|clone|transpose|detach|flatten|unsqueeze|squeeze)\("
    r"[^()]*(?:\([^()]*\)[^()]*)*\)$"
)
_COUNT = re.compile(r"(?:\.|->)(?:numel|size|stride|storage_offset|dim|nbytes|element_size)\([^()]*\)$")
_TENSOR_FUNCTION = re.compile(r"^at::(?:empty|zeros|ones|full|tensor|bmm|matmul|where|arange)\w*\(")
_ERRORS = re.compile(r"getErrorBuffer\(\)$")


# The beginning of a function: its name and the bracket of its parameters.
_HEAD = re.compile(r"^[A-Za-z_][^\n;={}()]*?\b(?P<name>\w+)\s*\(", re.MULTILINE)


@dataclass(frozen=True)
class Value:
    """What an expression is: `element` is the Metal type of a number, or of those of an array; empty if not known."""

    kind: Kind
    element: str = ""


UNKNOWN = Value("unknown")


@dataclass(frozen=True)
class Scope:
    """The code of a file without comments, and the part of the enclosing function before a position."""

    code: str
    before: str

    @classmethod
    def at(cls, code: str, place: int) -> Scope:
        """The scope of what is written at a place; functions end with a bracket in the first column."""
        begin = code.rfind("\n}", 0, place)
        return cls(code, code[begin + 1 : place])

    # ------------------------------------------------------------------------------------------ values
    def value(self, expression: str, depth: int = 0) -> Value:
        """What an expression is."""
        text = _unwrapped(expression)
        if depth > _DEPTH:
            return UNKNOWN
        if _ERRORS.search(text):
            return Value("errors")
        if cast := re.fullmatch(r"static_cast<(?P<type>[\w:]+)>\(.*\)", text, re.DOTALL):
            return self._of_type(cast["type"])
        if built := re.match(r"(?P<type>(?:std::)?(?:array|vector)<[^<>]*>)\s*\{", text):
            return self._of_type(built["type"])
        if _COUNT.search(text):
            return Value("number", "long")
        if _TENSOR_METHOD.search(text) or _TENSOR_FUNCTION.match(text):
            return Value("tensor")
        if re.fullmatch(r"\w+", text):
            return self._variable(text, depth)
        if of_container := re.fullmatch(r"(?P<name>\w+)\[[^\[\]]*\]", text):
            within = self._variable(of_container["name"], depth)
            return Value("tensor") if within.element == "Tensor" else UNKNOWN
        if member := re.fullmatch(r"\w+\.(?P<field>\w+)", text):
            return self._field(member["field"])
        chosen = _alternatives(text)
        if len(chosen) > 1:
            values = {self.value(one, depth + 1) for one in chosen} - {UNKNOWN}
            return values.pop() if len(values) == 1 else UNKNOWN
        if called := re.match(r"(?P<name>\w+)(?:<\w+>)?\(", text):
            return self._returned(called["name"])
        return UNKNOWN

    def _variable(self, name: str, depth: int) -> Value:
        type_, initial = self._declared(name)
        if type_ and type_ != "auto":
            return self._of_type(type_)
        return self.value(initial, depth + 1) if initial else UNKNOWN

    def _declared(self, name: str) -> tuple[str, str]:
        """The type and the initial value of a variable, the nearest declaration before; empty for what is not said."""
        own = rf"(?:(?<=[\n;{{(,])|^)\s*{_TYPE}[&*]?\s+{name}\s*(?P<next>[=,);{{(])"
        behind_another = rf",\s*{name}\s*=(?!=)"
        for text in (self.before, self.code):
            found = [one for one in re.finditer(own, text) if one["type"] != "return"]
            others = list(re.finditer(behind_another, text))
            if others and not (found and found[-1].start() > others[-1].start()):
                statement = max(text.rfind(mark, 0, others[-1].start()) for mark in ";{}")
                first = re.compile(rf"\s*{_TYPE}\s").match(text, statement + 1)
                return first["type"] if first else "", _until_end(text, others[-1].end())
            if found:
                return found[-1]["type"], _until_end(text, found[-1].end()) if found[-1]["next"] == "=" else ""
        return "", ""

    def _returned(self, function: str) -> Value:
        """What a function of the file returns."""
        declared = re.search(rf"(?:^|\n)\s*{_TYPE}[&*]?\s+{function}\s*\(", self.code)
        return self._of_type(declared["type"]) if declared and declared["type"] != "return" else UNKNOWN

    def _field(self, name: str) -> Value:
        """A field of one of the file's structures, where all that have one of that name have it of one type."""
        bodies = re.findall(r"\bstruct\s+\w+\s*\{(.*?)\n\};", self.code, re.DOTALL)
        types = {one["type"] for body in bodies for one in re.finditer(rf"\n\s*{_TYPE}\s*&?\s+{name}\s*[;={{]", body)}
        return self._of_type(types.pop()) if len(types) == 1 else UNKNOWN

    def _of_type(self, written: str) -> Value:
        alias = re.search(rf"\busing\s+{re.escape(written)}\s*=\s*([^;]+);", self.code)
        return _of_type(alias[1] if alias else written)

    # ------------------------------------------------------------------------------------------ strings
    def names(self, expression: str) -> tuple[re.Pattern[str], ...]:
        """The strings that an expression may be, a pattern each: what is not known is any word."""
        return tuple(map(re.compile, dict.fromkeys(islice(self._names(expression, 0), _MOST_NAMES))))

    def _names(self, expression: str, depth: int) -> Iterator[str]:
        text = _unwrapped(expression)
        if depth > _DEPTH:
            yield _ANYTHING
            return
        chosen = _alternatives(text)
        if len(chosen) > 1:
            for one in chosen:
                yield from self._names(one, depth + 1)
            return
        parts = _split(text, "+")
        if len(parts) > 1:
            yield from map("".join, product(*(list(self._names(part, depth + 1)) for part in parts)))
        elif literal := re.fullmatch(r'((?:"\w*"\s*)+)', text):
            yield re.escape("".join(re.findall(r'"(\w*)"', literal[1])))
        elif made := re.fullmatch(r"std::string\((.*)\)", text, re.DOTALL):
            yield from self._names(made[1], depth + 1)
        elif _TYPE_NAME.match(text):
            yield _SOME_TYPE
        elif re.fullmatch(r"\w+", text):
            _, initial = self._declared(text)
            yield from self._names(initial, depth + 1) if initial else self._names_at_calls(text, depth)
        elif called := re.match(r"(?P<name>\w+)\(", text):
            yield self._strings_of(called["name"])
        else:
            yield _ANYTHING

    def _names_at_calls(self, parameter: str, depth: int) -> Iterator[str]:
        """What the calls of the function around hand to a parameter of it."""
        head = _HEAD.search(self.before)
        opening = head.end() - 1 if head else 0
        parameters = split_arguments(self.before, opening) if head else []
        names = [re.split(r"[\s&*]+", one.strip())[-1] for one in parameters]
        if head is None or parameter not in names:
            yield _ANYTHING
            return
        calls = list(re.finditer(rf"(?<=[;{{}}(,=?:&|])\s*{head['name']}\s*\(", self.code))
        for call in calls:
            handed = split_arguments(self.code, call.end() - 1)
            if len(handed) == len(names):
                scope = Scope.at(self.code, call.end())
                yield from scope._names(handed[names.index(parameter)], depth + 1)
        if not calls:
            yield _ANYTHING

    def _strings_of(self, function: str) -> str:
        """Any of the strings that a function of the file returns, where all of them are literals or types."""
        body = re.search(rf"\bstd::string\s+{function}\s*\([^)]*\)\s*\{{(?P<body>.*?)\n\}}", self.code, re.DOTALL)
        returned = re.findall(r"\breturn\s+([^;]*);", body["body"]) if body else []
        known: list[str] = []
        for part in (part for one in returned for part in _alternatives(_unwrapped(one))):
            literal = re.fullmatch(r'"(\w*)"', part)
            if literal is None and not _TYPE_NAME.match(part):
                return _ANYTHING
            known.append(re.escape(literal[1]) if literal else _SOME_TYPE)
        return f"(?:{'|'.join(known)})" if known else _ANYTHING


def is_open(pattern: re.Pattern[str]) -> bool:
    """Whether a part of the string is not known."""
    return _ANYTHING in pattern.pattern


def says_nothing(pattern: re.Pattern[str]) -> bool:
    """Whether no part of the string is known, or its type alone."""
    return not pattern.pattern.replace(_ANYTHING, "").replace(_SOME_TYPE, "").strip("_")


def shown_as(pattern: re.Pattern[str]) -> str:
    """The string for people, with a star for each part that is a type or not known."""
    return pattern.pattern.replace(_ANYTHING, "*").replace(_SOME_TYPE, "*")


@lru_cache(maxsize=256)
def _of_type(written: str) -> Value:
    name = written.removeprefix("const ").removeprefix("at::").removeprefix("std::").strip()
    if name in ("Tensor", "TensorBase"):
        return Value("tensor")
    if name in _NUMBERS:
        return Value("number", _NUMBERS[name] or name)
    if name == "IntArrayRef":
        return Value("array", "long")
    if container := _CONTAINER.match(written.removeprefix("const ").strip()):
        return Value("array", _NUMBERS.get(container["element"]) or container["element"])
    return UNKNOWN


def _unwrapped(expression: str) -> str:
    """Without spaces around it, and brackets around the whole."""
    text = expression.strip()
    while text.startswith("(") and _closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    return -1


def _alternatives(text: str) -> list[str]:
    """The values of `a ? b : c ? d : e`, or the text itself."""
    parts = _split(text, "?")
    if len(parts) < 2:
        return [text]
    first, *rest = _split("?".join(parts[1:]), ":", joining="::")
    return [first.strip(), *_alternatives(":".join(rest).strip())] if rest else [text]


def _split(text: str, mark: str, joining: str = "") -> list[str]:
    """The parts between a mark, outside of brackets and literals; `joining` is the same mark in another sense."""
    parts, start, depth, place, quoted = [], 0, 0, 0, False
    while place < len(text):
        letter = text[place]
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            if joining and text.startswith(joining, place):
                place += len(joining)
                continue
            if depth == 0 and letter == mark:
                parts.append(text[start:place].strip())
                start = place + 1
        place += 1
    return [*parts, text[start:].strip()]


def _until_end(text: str, begin: int) -> str:
    """What is written up to the `;` or `,` that ends an initial value."""
    depth = 0
    for place in range(begin, len(text)):
        letter = text[place]
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (depth == 0 and letter in ";,"):
            return text[begin:place].strip()
    return text[begin:].strip()
