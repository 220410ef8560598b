"""Reconvergence points: where lanes of a SIMD group that diverged run together again.

A GPU runs the lanes of a SIMD group in step. Lanes that take different branches run together again after the branch.
On the host each lane runs independently. So every statement and function that contains SIMD-group operations gets a
`msl_region`. Its destructor waits for the lanes that are still inside.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .declarations import Function, Program
from .statements import BRANCHES, LOOPS, ends_do, is_call, statement_end
from .tokens import Tokens

_OPERATION = re.compile(r"(?:__metal_)?(?:simd|quad|simdgroup)_\w+")
_CONTROL = LOOPS | BRANCHES


def insert_regions(tokens: Tokens, program: Program) -> None:
    """Add regions to the functions that contain SIMD-group operations; lines stay where they are."""
    text = tokens.text
    direct = frozenset(i for i, token in enumerate(text) if _OPERATION.fullmatch(token) and is_call(text, i))
    if not direct:
        return
    calls = direct | _indirect_calls(tokens, program, direct)
    for function in program.functions:
        if "constexpr" in text[function.start : function.parameters_begin]:
            continue  # a region cannot be in a constant expression
        inside = sorted(i for i in calls if function.body_begin < i < function.body_end)
        if inside:
            _in_function(tokens, function, inside)


def _indirect_calls(tokens: Tokens, program: Program, calls: Collection[int]) -> set[int]:
    """Calls of functions that contain operations, found by name."""
    text = tokens.text
    # Not operators: they are called by a sign or through an object.
    named = {f.name for f in program.functions if f.name.isidentifier()}
    uses: dict[str, list[int]] = {}
    for i, token in enumerate(text):
        if token in named and is_call(text, i):
            uses.setdefault(token, []).append(i)
    indirect: set[int] = set()
    grown = True
    while grown:
        grown = False
        for function in program.functions:
            if any(function.body_begin < i < function.body_end for i in {*calls, *indirect}):
                new = set(uses.pop(function.name, ())) - indirect
                grown = grown or bool(new)
                indirect |= new
    return indirect


def _in_function(tokens: Tokens, function: Function, calls: Sequence[int]) -> None:
    """A region for each statement of the function that contains one of the calls, and for the function."""
    text = tokens.text
    for i in range(function.body_begin + 1, function.body_end):
        if text[i] not in _CONTROL or (text[i] == "while" and ends_do(tokens, i)):
            continue
        end = statement_end(tokens, i)
        if any(i < call < end for call in calls):
            # In front of the white space, which may hold `#pragma unroll`.
            tokens.space[i] = f" {{ msl_region msl_region_{i}; {tokens.space[i]}"
            if text[i] in LOOPS:
                _in_iteration(tokens, i)
            text[end] += " }"
    if not function.is_kernel:
        text[function.body_begin] += " msl_region msl_region_of_function;"
        # Each use gets its own call site: lanes from different branches are at different sites.
        text[function.head] = f"__attribute__((always_inline)) {text[function.head]}"


def _in_iteration(tokens: Tokens, i: int) -> None:
    """A region for each iteration of the loop at `i`: lanes that finish it early wait for the others."""
    text = tokens.text
    body = i + 1 if text[i] == "do" else tokens.pair[i + 1] + 1
    if text[body].startswith("{"):
        text[body] += f" msl_region msl_iteration_{i};"
    else:
        end = statement_end(tokens, body)
        tokens.space[body] = f" {{ msl_region msl_iteration_{i}; {tokens.space[body]}"
        text[end] += " }"
