"""Metal's `[[attributes]]`: removed from the tokens, because C++ rejects them, and kept apart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...metal_limits import MAX_THREADS_PER_THREADGROUP
from .constants import evaluate, integer_constants
from .tokens import Tokens

BUILTINS = frozenset(
    [
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "threadgroup_position_in_grid",
        "threads_per_threadgroup",
        "dispatch_threads_per_threadgroup",
        "threadgroups_per_grid",
        "threads_per_grid",
        "grid_size",
        "grid_origin",
        "thread_index_in_threadgroup",
        "thread_index_in_simdgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "dispatch_simdgroups_per_threadgroup",
        "threads_per_simdgroup",
        "thread_execution_width",
        "quadgroup_index_in_threadgroup",
        "thread_index_in_quadgroup",
        "quadgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup",
    ]
)
"""Attributes of kernel parameters that hold the position of the thread."""

_WITH_NUMBER = frozenset({"buffer", "threadgroup", "max_total_threads_per_threadgroup"})
BINDINGS = frozenset({"buffer", "texture", "sampler", "threadgroup"})
"""Attributes of what the host binds."""


Attributes = dict[int, list[str]]
"""Attributes by the index of the token that follows them."""


def cut_attributes(tokens: Tokens) -> tuple[Tokens, Attributes]:
    """Tokens without `[[...]]`, with matched brackets, and the removed attributes.

    Raises:
        UnbalancedError: a bracket has no partner.
    """
    tokens.match_brackets()
    text, space, pair = tokens.text, tokens.space, tokens.pair
    if not any(token == "[" and text[i + 1] == "[" for i, token in enumerate(text) if token == "["):
        return tokens, {}
    kept_text: list[str] = []
    kept_space: list[str] = []
    attributes: Attributes = {}
    carried = ""  # keeps the line numbers
    i = 0
    while i < len(text):
        if text[i] == "[" and text[i + 1] == "[" and pair[i] == pair[i + 1] + 1:
            end = pair[i + 1]
            attributes.setdefault(len(kept_text), []).extend(_list(tokens, i + 2, end))
            carried += "".join(space[i : end + 2])
            i = end + 2
            continue
        kept_text.append(text[i])
        kept_space.append(carried + space[i])
        carried = ""
        i += 1
    kept = Tokens(kept_text, kept_space)
    kept.match_brackets()
    _evaluate_arguments(kept, attributes)
    return kept, attributes


def _evaluate_arguments(tokens: Tokens, attributes: Attributes) -> None:
    """`buffer(kInput)` becomes `buffer(0)`."""
    constants: dict[str, int] | None = None
    for listed in attributes.values():
        for position, attribute in enumerate(listed):
            name, argument = attribute_name(attribute), attribute_argument(attribute)
            if name in _WITH_NUMBER and not argument.isdigit():
                constants = integer_constants(tokens) if constants is None else constants
                value = evaluate(argument, constants)
                if value is not None:
                    listed[position] = f"{name}({value})"


def _list(tokens: Tokens, begin: int, end: int) -> Iterator[str]:
    """The attributes between two brackets: `kernel, max_total_threads_per_threadgroup(64)` is two."""
    i = begin
    while i < end:
        if tokens.text[i] == ",":
            yield tokens.span(begin, i).strip()
            begin = i + 1
        i = tokens.pair[i] + 1 if tokens.text[i] in ("(", "[", "{") else i + 1
    yield tokens.span(begin, end).strip()


def attribute_name(attribute: str) -> str:
    """`buffer` of `buffer(3)`."""
    return attribute.split("(", 1)[0].strip()


def attribute_argument(attribute: str) -> str:
    """`3` of `buffer(3)`; empty if there is none."""
    match = re.fullmatch(r"\w+\s*\((.*)\)", attribute, re.DOTALL)
    return match[1].strip() if match else ""


def max_threads(attributes: list[str]) -> int:
    """The limit of `[[max_total_threads_per_threadgroup(n)]]` if `n` is a number; else Metal's limit."""
    for attribute in attributes:
        argument = attribute_argument(attribute)
        if attribute_name(attribute) == "max_total_threads_per_threadgroup" and argument.isdigit():
            return min(int(argument), MAX_THREADS_PER_THREADGROUP)
    return MAX_THREADS_PER_THREADGROUP


def host_name(attributes: list[str]) -> str | None:
    """The name that `[[host_name("...")]]` gives; adjacent string literals are one."""
    for attribute in attributes:
        if attribute_name(attribute) == "host_name":
            return "".join(re.findall(r'"([^"]*)"', attribute))
    return None
