"""Where diverged lanes of a SIMD group meet again.

A GPU runs the lanes of a SIMD group in step; lanes that a branch or a loop parted go on together behind it. On the host
each lane runs on its own, so what comes behind must wait: statements that hold SIMD-group operations, and functions
that do, get a `msl_region`, whose destructor waits for the lanes that are still inside.
"""

from __future__ import annotations

import re

from .declarations import Function, Program
from .meetings import Meetings
from .statements import BRANCHES, LOOPS, ends_do, is_call, statement_end
from .tokens import Tokens

_OPERATION = re.compile(r"(?:__metal_)?(?:simd|quad|simdgroup)_\w+")


def insert_regions(tokens: Tokens, program: Program) -> None:
    """Puts regions into the functions in which lanes communicate; lines stay where they are."""
    text = tokens.text
    calls = {i for i, token in enumerate(text) if _OPERATION.fullmatch(token) and is_call(text, i)}
    if not calls:
        return
    exchanges = frozenset(calls)
    calls |= _indirect_calls(tokens, program, calls)
    meetings = Meetings(tokens, {f.name for f in program.functions})
    for function in program.functions:
        if "constexpr" in text[function.start : function.parameters_begin]:
            continue  # a region cannot be in a constant expression
        inside = sorted(i for i in calls if function.body_begin < i < function.body_end)
        if inside:
            _insert(tokens, function, inside, meetings)
            meetings.before_exchanges(sorted(exchanges.intersection(inside)))
            meetings.in_block(function.body_begin, inside)


def _indirect_calls(tokens: Tokens, program: Program, calls: set[int]) -> set[int]:
    """Calls, by name, of functions that hold operations themselves."""
    text = tokens.text
    # Operators are called by a sign or through an object: of `operator()` only the bracket would be left.
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
            if any(function.body_begin < i < function.body_end for i in calls | indirect):
                new = set(uses.pop(function.name, ())) - indirect
                grown = grown or bool(new)
                indirect |= new
    return indirect


def _insert(tokens: Tokens, function: Function, calls: list[int], meetings: Meetings) -> None:
    text = tokens.text
    for i in range(function.body_begin + 1, function.body_end):
        if text[i] not in LOOPS and text[i] not in BRANCHES:
            continue
        if text[i] == "while" and ends_do(tokens, i):
            continue
        end = statement_end(tokens, i)
        if any(i < call < end for call in calls):
            # In front of the white space, which may hold `#pragma unroll`.
            tokens.space[i] = f" {{ msl_region msl_region_{i}; {tokens.space[i]}"
            if text[i] in LOOPS:
                _wrap_body(tokens, i)
                meetings.before_turn(i)
            elif text[i] == "if":
                meetings.before_branch(i, f"msl_region_{i}")
            else:
                meetings.before_switch(i, f"msl_region_{i}")
            text[end] += " }"
    if not function.is_kernel:
        text[function.body_begin] += " msl_region msl_region_of_function;"
        # A call of its own for each use: lanes that come from different branches are not at the same one.
        text[function.head] = f"__attribute__((always_inline)) {text[function.head]}"


def _wrap_body(tokens: Tokens, i: int) -> None:
    """A region for each turn of the loop at `i`: lanes that go to the next turn early wait for the others."""
    text = tokens.text
    body = i + 1 if text[i] == "do" else tokens.pair[i + 1] + 1
    if text[body].startswith("{"):
        text[body] += f" msl_region msl_turn_{i};"
    else:
        end = statement_end(tokens, body)
        tokens.space[body] = f" {{ msl_region msl_turn_{i}; {tokens.space[body]}"
        text[end] += " }"
