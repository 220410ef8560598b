"""Rewrites `threadgroup` variables.

On the host they become static objects: threadgroups run one after another, so one object is enough. The strict pass
allows such variables only in kernels, so there they become references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .declarations import Program
from .tokens import Tokens


@dataclass(frozen=True)
class _Declarator:
    """`name[4]`: the index of the name, and the index after the dimensions."""

    name: int
    end: int


def rewrite_shared_variables(tokens: Tokens, program: Program, real_address_spaces: bool) -> None:
    """Rewrite declarations of threadgroup variables in function bodies; pointers and references stay."""
    text = tokens.text
    words = [i for i, token in enumerate(text) if token == "threadgroup"]
    if not words:
        return
    for function in program.functions:
        visible: list[tuple[int, str]] = []  # the end of a variable's scope, and its name
        for i in words:
            if not function.body_begin < i < function.body_end:
                continue
            start = _statement_start(tokens, i)
            declarators = list(_declarators(tokens, i)) if start is not None else []
            if start is None or not declarators:
                continue
            if real_address_spaces:
                _make_references(tokens, start, i, declarators)
                continue
            block_end = tokens.pair[_enclosing_block(tokens, i)]
            visible = [(end, name) for end, name in visible if end > i]
            visible += [(block_end, tokens.text[d.name]) for d in declarators]
            _make_static(tokens, i, declarators, [name for _, name in visible])


def _enclosing_block(tokens: Tokens, i: int) -> int:
    """Index of the `{` of the innermost block around `i`."""
    text = tokens.text
    i -= 1
    while text[i] != "{":
        i = tokens.pair[i] - 1 if text[i] in ("}", ")", "]") else i - 1
    return i


def _make_static(tokens: Tokens, i: int, declarators: list[_Declarator], visible: list[str]) -> None:
    """One statement for each variable, so that a checked build can leave a gap after each.

    After the last, the total size of the threadgroup variables in scope is checked.
    """
    element = tokens.span(i + 1, declarators[0].name)
    tokens.text[i] = "MSL_SHARED"
    ends = [*(d.name - 1 for d in declarators[1:]), _statement_end(tokens, i)]
    for d, end in zip(declarators, ends, strict=True):
        total = " + ".join(f"sizeof({name})" for name in visible)
        following = f" MSL_SHARED {element} " if end != ends[-1] else f" MSL_SHARED_TOTAL({total});"
        tokens.text[end] = f"; MSL_SHARED_END({tokens.text[d.name]});{following}"


def _make_references(tokens: Tokens, start: int, i: int, declarators: list[_Declarator]) -> None:
    end = _statement_end(tokens, i)
    element = tokens.span(i + 1, declarators[0].name)
    parts = []
    for d in declarators:
        name = tokens.text[d.name]
        alias = f"msl_shared_{name}"
        parts.append(
            f"typedef {element} {alias}{tokens.span(d.name + 1, d.end)}; "
            f"threadgroup {alias}& {name} = *(threadgroup {alias}*)0;"
        )
    tokens.erase(start, end + 1)
    tokens.text[start] = " ".join(parts)


def _statement_start(tokens: Tokens, i: int) -> int | None:
    """Index of the first token of the statement, if the `threadgroup` at `i` can begin a declaration."""
    text = tokens.text
    start = i
    i -= 1
    while i >= 0:
        if text[i] == ")" and text[tokens.pair[i] - 1] == "alignas":
            i = tokens.pair[i] - 2
        elif text[i] in ("const", "constexpr", "volatile", "static", ""):
            i -= 1
        else:
            break
        start = i + 1
    return start if text[i].endswith(("{", "}", ";")) else None


def _statement_end(tokens: Tokens, i: int) -> int:
    while not tokens.text[i].startswith(";"):
        i = tokens.pair[i] + 1 if tokens.text[i] in ("(", "[", "{") else i + 1
    return i


def _declarators(tokens: Tokens, i: int) -> Iterator[_Declarator]:
    """The variables that the statement at `i` declares; none for pointers and references."""
    text, pair = tokens.text, tokens.pair
    declarators: list[_Declarator] = []
    name = end = i
    i += 1
    while True:
        token = text[i]
        if token in ("*", "&"):
            return
        if token == "__attribute__":
            i = pair[i + 1] + 1
            continue
        if token == "<":
            i = tokens.close_angle(i) or i
        elif token in ("[", "{", "("):
            i = pair[i]
            end = i + 1
        elif token == "=":
            while text[i + 1] not in (",", ";"):
                i = pair[i + 1] if text[i + 1] in ("(", "[", "{") else i + 1
        elif token in (",", ";"):
            declarators.append(_Declarator(name, end))
            if token == ";":
                break
        elif token.isidentifier():
            name, end = i, i + 1
        i += 1
    yield from declarators
