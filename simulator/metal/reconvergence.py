"""Reconvergence points: where lanes of a SIMD group that diverged run together again.

A GPU runs the lanes of a SIMD group in step. Lanes that take different branches run together again behind the branch.
On the host each lane runs on its own. So every statement and function that contains SIMD-group operations gets a
`msl_region`. Its destructor waits for the lanes that are still inside.

Other loops, branches and conditions diverge the lanes of a GPU as well, and NVIDIA's do not reconverge by themselves.
So a block has a `msl_lane_set`: the lanes that run the block together. They reconverge in front of each statement that
contains operations. After a statement by which some lanes leave the block, the set is the lanes that are left. On the
host these calls do nothing, because lanes wait in the operation itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from .declarations import Function, Program
from .statements import BRANCHES, LOOPS, ends_do, is_call, statement_end
from .tokens import Tokens

_OPERATION = re.compile(r"(?:__metal_)?(?:simd|quad|simdgroup)_\w+")
_PLAIN_OPERATION = re.compile(r"(?:simd|quad|simdgroup)_\w+")
_EXCHANGE = re.compile(r"(?:simd|quad)_\w+")
_EXITS = frozenset({"return", "break", "continue", "goto"})
_CONTROL = LOOPS | BRANCHES
_DIVERGING = _CONTROL | {"?", "&&", "||"}
_LABELS = frozenset({"case", "default"})
# These look like calls and never diverge.
_UNIFORM_CALLS = frozenset(
    [
        *("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat"),
        *("min", "max", "abs", "fabs", "fma", "select", "clamp", "sizeof", "threadgroup_barrier"),
    ]
)


def insert_reconvergence_points(tokens: Tokens, program: Program) -> None:
    """Add regions and lane sets to the functions that contain SIMD-group operations; lines stay where they are."""
    text = tokens.text
    direct = frozenset(i for i, token in enumerate(text) if _OPERATION.fullmatch(token) and is_call(text, i))
    if not direct:
        return
    calls = direct | _indirect_calls(tokens, program, direct)
    points = _ReconvergencePoints(tokens, {f.name for f in program.functions})
    for function in program.functions:
        if "constexpr" in text[function.start : function.parameters_begin]:
            continue  # a region cannot be in a constant expression
        inside = sorted(i for i in calls if function.body_begin < i < function.body_end)
        if inside:
            points.insert_regions(function, inside)
            points.at_operands(sorted(direct.intersection(inside)))
            points.in_block(function.body_begin, inside)


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


class _ReconvergencePoints:
    """Inserts regions, lane sets and reconvergence points into the functions of a program.

    `functions`: the names of the program's own functions. A call of one may diverge.
    """

    def __init__(self, tokens: Tokens, functions: Collection[str]) -> None:
        self._tokens = tokens
        self._functions = functions
        self._switches: set[int] = set()

    # ------------------------------------------------------------------------------------------ regions
    def insert_regions(self, function: Function, calls: Sequence[int]) -> None:
        """A region for each statement of the function that contains one of the calls, and for the function."""
        text, tokens = self._tokens.text, self._tokens
        for i in range(function.body_begin + 1, function.body_end):
            if text[i] not in _CONTROL or (text[i] == "while" and ends_do(tokens, i)):
                continue
            end = statement_end(tokens, i)
            if any(i < call < end for call in calls):
                # In front of the white space, which may hold `#pragma unroll`.
                tokens.space[i] = f" {{ msl_region msl_region_{i}; {tokens.space[i]}"
                self._at_condition(i)
                text[end] += " }"
        if not function.is_kernel:
            text[function.body_begin] += " msl_region msl_region_of_function;"
            # Each use gets its own call site: lanes from different branches are at different sites.
            text[function.head] = f"__attribute__((always_inline)) {text[function.head]}"

    def _at_condition(self, i: int) -> None:
        if self._tokens.text[i] in LOOPS:
            self._iteration_region(i)
            self._at_loop_condition(i)
        elif self._tokens.text[i] == "if":
            self._at_branch(i, f"msl_region_{i}")
        else:
            self._at_switch(i, f"msl_region_{i}")

    def _iteration_region(self, i: int) -> None:
        """A region for each iteration of the loop at `i`: lanes that finish it early wait for the others."""
        text, tokens = self._tokens.text, self._tokens
        body = i + 1 if text[i] == "do" else tokens.pair[i + 1] + 1
        if text[body].startswith("{"):
            text[body] += f" msl_region msl_iteration_{i};"
        else:
            end = statement_end(tokens, body)
            tokens.space[body] = f" {{ msl_region msl_iteration_{i}; {tokens.space[body]}"
            text[end] += " }"

    # ------------------------------------------------------------------------------------------ conditions
    def _at_branch(self, i: int, region: str) -> None:
        """The lanes that entered the `region` around the `if` at `i` reconverge at its condition."""
        if self._tokens.text[i + 1] == "(":
            self._reconverge(i + 2, self._tokens.pair[i + 1], f"{region}.reconverge((bool)(", "))")

    def _at_switch(self, i: int, region: str) -> None:
        """The lanes in the `region` around the `switch` at `i` that jump to the same label are a lane set."""
        text, pair = self._tokens.text, self._tokens.pair
        opening, closing = i + 1, pair[i + 1]
        body = closing + 1
        labels = self._case_labels(body)
        if labels is None or not {"=", ";"}.isdisjoint(text[opening:closing]):
            return
        lanes = f"msl_lanes_{body}"
        numbers = [
            f"{' || '.join(f'msl_x == ({value})' for value in values)} ? {number} : "
            for number, values in enumerate(labels, start=1)
            if values
        ]
        self._switches.add(body)
        self._tokens.space[i] += f"msl_lane_set {lanes}; "
        text[opening] += f"{lanes}.by_label({region}, ("
        text[closing] = f"), [&](auto msl_x) {{ return {''.join(numbers)}0; }}){text[closing]}"

    def _at_loop_condition(self, i: int) -> None:
        """The lanes that evaluate the condition of the loop at `i` reconverge after it."""
        text, pair = self._tokens.text, self._tokens.pair
        opening = i + 1 if text[i] != "do" else statement_end(self._tokens, i + 1) + 2
        begin, end = opening + 1, pair[opening]
        if text[i] == "for":
            begin = self._after(begin, ";")
            end = self._after(begin, ";") - 1
        if end <= pair[opening]:
            self._reconverge(begin, end, "msl_reconverged(msl_active(), (bool)(", "))")

    def at_operands(self, calls: Sequence[int]) -> None:
        """Lanes reconverge after the first operand of an operation."""
        text, pair = self._tokens.text, self._tokens.pair
        for i in calls:
            close = self._tokens.close_angle(i + 1) if text[i + 1] == "<" else i
            if _EXCHANGE.fullmatch(text[i]) is None or close is None or text[close + 1] != "(":
                continue
            end = min(self._after(close + 2, ","), pair[close + 1] + 1) - 1
            if "{" not in text[close + 2 : end]:
                self._reconverge(close + 2, end, "msl_reconverged(msl_active(), ", ")")

    # ------------------------------------------------------------------------------------------ blocks
    def in_block(self, opening: int, calls: Sequence[int]) -> None:
        """Lane sets for the block at `opening` and the blocks inside; `calls` are the operations in it, in order."""
        lanes = f"msl_lanes_{opening}"
        if self._in_statements(opening, calls, lanes):
            self._tokens.text[opening] += f" msl_lane_set {lanes};"

    def _in_statements(self, opening: int, calls: Sequence[int], lanes: str) -> bool:
        """Reconvergence points of a lane set in the block at `opening`; returns whether there are any."""
        text = self._tokens.text
        is_used, diverged, always_leaves, last = False, False, True, opening
        for begin, end in self._statements(opening + 1, self._tokens.pair[opening]):
            inside = calls[bisect_left(calls, begin) : bisect_right(calls, end)]
            if not calls or begin > calls[-1]:
                break
            if not _LABELS.isdisjoint(text[last + 1 : begin]):
                diverged = True  # by the jump to the label
                if not always_leaves:
                    # Other lanes fall through from above; count the lanes that arrive.
                    text[begin - 1] += f" {lanes}.update();"
            always_leaves, last = self._never_falls_through(begin, end), end
            if inside:
                self._in_statement(begin, inside)
            is_compound = text[begin] in _CONTROL or text[begin].startswith("{")
            leaves = is_compound and not _EXITS.isdisjoint(text[begin : end + 1])
            before, after = "", ""
            if leaves and (not inside or text[begin].startswith("{")):
                before, after = f" {{ msl_exit_scope msl_exit_scope_{begin}({lanes});", " }"
            if inside and diverged:
                before = f" {lanes}.reconverge();{before}"
            if leaves:
                after += f" {lanes}.update();"
            is_used = is_used or bool(before or after)
            diverged = not leaves and ((diverged and not inside) or self._may_diverge(begin, end, bool(inside)))
            self._tokens.space[begin] = before + self._tokens.space[begin]
            text[end] += after
        return is_used

    def _in_statement(self, i: int, calls: Sequence[int]) -> None:
        """The blocks of the statement at `i`."""
        text, pair = self._tokens.text, self._tokens.pair
        if text[i].startswith("{"):
            self.in_block(i, calls)
        elif text[i] == "do":
            self._in_body(i + 1, calls)
        elif text[i] in ("for", "while"):
            self._in_body(pair[i + 1] + 1, calls)
        elif text[i] == "switch":
            self._in_switch(pair[i + 1] + 1, calls)
        elif text[i] == "if":
            body = pair[i + 2 if text[i + 1] == "constexpr" else i + 1] + 1
            self._in_body(body, calls)
            after = statement_end(self._tokens, body) + 1
            if text[after] == "else":
                self._in_body(after + 1, calls)

    def _in_body(self, i: int, calls: Sequence[int]) -> None:
        end = statement_end(self._tokens, i)
        inside = calls[bisect_left(calls, i) : bisect_right(calls, end)]
        if inside:
            self._in_statement(i, inside)

    def _in_switch(self, opening: int, calls: Sequence[int]) -> None:
        """A switch with unknown labels has lane sets only in the blocks inside it."""
        if opening in self._switches:
            self._in_statements(opening, calls, f"msl_lanes_{opening}")
        elif self._tokens.text[opening].startswith("{"):
            for begin, _ in self._statements(opening + 1, self._tokens.pair[opening]):
                self._in_body(begin, calls)

    def _case_labels(self, opening: int) -> list[list[str]] | None:
        """The case values of each labelled statement of the switch with its body at `opening`; none for `default`.

        None if some labels are inside of a statement.
        """
        text, pair = self._tokens.text, self._tokens.pair
        if not text[opening].startswith("{"):
            return None
        labelled: list[list[str]] = []
        last, count = opening, 0
        for begin, end in self._statements(opening + 1, pair[opening]):
            labels = [i for i in range(last + 1, begin) if text[i] in _LABELS]
            values = [self._tokens.span(i + 1, self._after(i, ":") - 1) for i in labels]
            if labels:
                labelled.append(values if "" not in values else [])
            count += len(labels)
            last = end
        nested = sum(self._labels_of_switches(opening + 1, pair[opening]))
        has_all = count + nested == sum(text[i] in _LABELS for i in range(opening, pair[opening]))
        return labelled if has_all else None

    def _labels_of_switches(self, begin: int, end: int) -> Iterator[int]:
        """The number of labels of each outermost switch between tokens `begin` and `end`."""
        i = begin
        while i < end:
            last = statement_end(self._tokens, i) if self._tokens.text[i] == "switch" else i
            if last > i:
                yield sum(self._tokens.text[k] in _LABELS for k in range(i, last))
            i = last + 1

    def _never_falls_through(self, begin: int, end: int) -> bool:
        """Whether control never falls through the statement from `begin` to `end`."""
        text = self._tokens.text
        if not text[begin].startswith("{"):
            return text[begin] in _EXITS
        *_, last = [(begin, begin), *self._statements(begin + 1, end)]
        return last != (begin, begin) and self._never_falls_through(*last)

    def _statements(self, i: int, end: int) -> Iterator[tuple[int, int]]:
        """The first and the last token of each statement from `i` on, without the labels of a switch."""
        text = self._tokens.text
        while i < end:
            if not text[i]:
                i += 1
            elif text[i] in _LABELS:
                i = self._after(i, ":")
            else:
                last = statement_end(self._tokens, i)
                if last >= end:
                    return  # a `;` is missing; clang reports it
                yield i, last
                i = last + 1

    def _after(self, i: int, sign: str) -> int:
        """The index after the next `sign` outside of brackets; after all tokens if there is none."""
        text, pair = self._tokens.text, self._tokens.pair
        while i < len(text) and text[i] != sign:
            if i in pair and text[i][:1] in ("(", "[", "{"):
                i = pair[i]
            elif text[i] == "<":
                i = self._tokens.close_angle(i) or i
            i += 1
        return i + 1

    def _reconverge(self, begin: int, end: int, before: str, after: str) -> None:
        """Add a reconvergence point after the expression in tokens `begin` to `end - 1` if it may diverge."""
        declares = not {"=", ";"}.isdisjoint(self._tokens.text[begin:end])
        if begin < end and not declares and self._may_diverge(begin, end - 1):
            self._tokens.text[begin - 1] += before
            self._tokens.text[end] = after + self._tokens.text[end]

    def _may_diverge(self, begin: int, end: int, communicates: bool = False) -> bool:
        """Whether lanes may diverge in tokens `begin` to `end`; statements with a region reconverge at their end."""
        text = self._tokens.text
        if communicates and text[begin] in _CONTROL:
            return False
        for i in range(begin, end + 1):
            token = text[i]
            if token in _DIVERGING or (token in self._functions and is_call(text, i)):
                return True
            is_called = text[i + 1 : i + 2] == ["("] and token.isidentifier()
            if is_called and token not in _UNIFORM_CALLS and _PLAIN_OPERATION.fullmatch(token) is None:
                return True
        return False
