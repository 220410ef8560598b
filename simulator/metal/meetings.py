"""Where lanes meet again that a statement without SIMD-group operations parted, in front of the next operation.

`convergence` lets the statements end together in which lanes communicate. Any other loop, branch or condition may part
the lanes of a GPU as well, for as long as it likes. So the lanes that run a block together are its `msl_company`: in
front of a statement in which they communicate they meet, and a statement that some of them leave the block by is one
behind which the others are a company of their own. On the host, where lanes wait in the operation itself, all of this
is nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from .statements import BRANCHES, LOOPS, is_call, statement_end
from .tokens import Tokens

_EXITS = frozenset({"return", "break", "continue", "goto"})
_CONTROL = LOOPS | BRANCHES
_PARTING = _CONTROL | {"?", "&&", "||"}
_EXCHANGE = re.compile(r"(?:simd|quad)_\w+")
_OPERATION = re.compile(r"(?:simd|quad|simdgroup)_\w+")
# What is written like a call and is one step for all lanes.
_ONE_STEP = frozenset(
    [
        *("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat"),
        *("min", "max", "abs", "fabs", "fma", "select", "clamp", "sizeof", "threadgroup_barrier"),
    ]
)


class Meetings:
    """Puts companies and meetings into the bodies of one program's functions.

    `functions`: the names of the program's own functions, each of which may part the lanes that call it.
    """

    def __init__(self, tokens: Tokens, functions: Collection[str]) -> None:
        self._tokens = tokens
        self._functions = functions
        self._switches: set[int] = set()

    def before_branch(self, i: int, region: str) -> None:
        """The lanes that entered the `region` around the `if` at `i` take its branches together."""
        if self._tokens.text[i + 1] == "(":
            self._meet(i + 2, self._tokens.pair[i + 1], f"{region}.meet((bool)(", "))")

    def before_switch(self, i: int, region: str) -> None:
        """The lanes that entered the `region` around the `switch` at `i`, and go to one place in it, are a company."""
        text, pair = self._tokens.text, self._tokens.pair
        opening, closing = i + 1, pair[i + 1]
        body = closing + 1
        places = self._places(body)
        if places is None or not {"=", ";"}.isdisjoint(text[opening:closing]):
            return
        company = f"msl_company_{body}"
        numbers = [
            f"{' || '.join(f'msl_x == ({label})' for label in labels)} ? {number} : "
            for number, labels in enumerate(places, start=1)
            if labels
        ]
        self._switches.add(body)
        self._tokens.space[i] += f"msl_company {company}; "
        text[opening] += f"{company}.of({region}, ("
        text[closing] = f"), [&](auto msl_x) {{ return {''.join(numbers)}0; }}){text[closing]}"

    def before_turn(self, i: int) -> None:
        """The lanes that ask together whether the loop at `i` goes on find out together."""
        text, pair = self._tokens.text, self._tokens.pair
        opening = i + 1 if text[i] != "do" else statement_end(self._tokens, i + 1) + 2
        begin, end = opening + 1, pair[opening]
        if text[i] == "for":
            begin = self._behind(begin, ";")
            end = self._behind(begin, ";") - 1
        if end <= pair[opening]:
            self._meet(begin, end, "msl_together(msl_here(), (bool)(", "))")

    def before_exchanges(self, calls: Sequence[int]) -> None:
        """What lanes give to an operation is known to all of them when they exchange it."""
        text, pair = self._tokens.text, self._tokens.pair
        for i in calls:
            close = self._tokens.close_angle(i + 1) if text[i + 1] == "<" else i
            if _EXCHANGE.fullmatch(text[i]) is None or close is None or text[close + 1] != "(":
                continue
            end = min(self._behind(close + 2, ","), pair[close + 1] + 1) - 1
            if "{" not in text[close + 2 : end]:
                self._meet(close + 2, end, "msl_together(msl_here(), ", ")")

    def in_block(self, opening: int, calls: Sequence[int]) -> None:
        """Companies for the block at `opening` and those inside; `calls` are the operations in it, in order."""
        company = f"msl_company_{opening}"
        if self._in_statements(opening, calls, company):
            self._tokens.text[opening] += f" msl_company {company};"

    def _in_statements(self, opening: int, calls: Sequence[int], company: str) -> bool:
        """Meetings of a `company` in the block at `opening`, and whether there are any."""
        text = self._tokens.text
        is_used, parted, leaves_for_sure, last = False, False, True, opening
        for begin, end in self._statements(opening + 1, self._tokens.pair[opening]):
            inside = calls[bisect_left(calls, begin) : bisect_right(calls, end)]
            if not calls or begin > calls[-1]:
                break
            if not {"case", "default"}.isdisjoint(text[last + 1 : begin]):
                parted = True  # by the jump to the label
                if not leaves_for_sure:
                    # Those that come from above are others; who they are is known when they arrive.
                    text[begin - 1] += f" {company}.part();"
            leaves_for_sure, last = self._leaves_for_sure(begin, end), end
            if inside:
                self._in_statement(begin, inside)
            is_compound = text[begin] in _CONTROL or text[begin].startswith("{")
            leaves = is_compound and not _EXITS.isdisjoint(text[begin : end + 1])
            before, after = "", ""
            if leaves and (not inside or text[begin].startswith("{")):
                before, after = f" {{ msl_leaving msl_leaving_{begin}({company});", " }"
            if inside and parted:
                before = f" {company}.meet();{before}"
            if leaves:
                after += f" {company}.part();"
            is_used = is_used or bool(before or after)
            parted = not leaves and ((parted and not inside) or self._may_part(begin, end, bool(inside)))
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
            behind = statement_end(self._tokens, body) + 1
            if text[behind] == "else":
                self._in_body(behind + 1, calls)

    def _in_body(self, i: int, calls: Sequence[int]) -> None:
        end = statement_end(self._tokens, i)
        inside = calls[bisect_left(calls, i) : bisect_right(calls, end)]
        if inside:
            self._in_statement(i, inside)

    def _in_switch(self, opening: int, calls: Sequence[int]) -> None:
        """A switch whose places are not known has companies in the blocks inside alone."""
        if opening in self._switches:
            self._in_statements(opening, calls, f"msl_company_{opening}")
        elif self._tokens.text[opening].startswith("{"):
            for begin, _ in self._statements(opening + 1, self._tokens.pair[opening]):
                self._in_body(begin, calls)

    def _places(self, opening: int) -> list[list[str]] | None:
        """The values that jump to each place of the switch whose body is at `opening`; none for that of `default`.

        None where not all labels stand in the body itself.
        """
        text, pair = self._tokens.text, self._tokens.pair
        if not text[opening].startswith("{"):
            return None
        places: list[list[str]] = []
        last, known = opening, 0
        for begin, end in self._statements(opening + 1, pair[opening]):
            labels = [i for i in range(last + 1, begin) if text[i] in ("case", "default")]
            values = [self._tokens.span(i + 1, self._behind(i, ":") - 1) for i in labels]
            if labels:
                places.append(values if "" not in values else [])
            known += len(labels)
            last = end
        nested = sum(self._labels_of_switches(opening + 1, pair[opening]))
        has_all = known + nested == sum(text[i] in ("case", "default") for i in range(opening, pair[opening]))
        return places if has_all else None

    def _labels_of_switches(self, begin: int, end: int) -> Iterator[int]:
        """How many labels each switch between tokens `begin` and `end` has that is in no other."""
        i = begin
        while i < end:
            last = statement_end(self._tokens, i) if self._tokens.text[i] == "switch" else i
            if last > i:
                yield sum(self._tokens.text[k] in ("case", "default") for k in range(i, last))
            i = last + 1

    def _leaves_for_sure(self, begin: int, end: int) -> bool:
        """Whether nobody gets behind the statement from `begin` to `end`."""
        text = self._tokens.text
        if not text[begin].startswith("{"):
            return text[begin] in _EXITS
        *_, last = [(begin, begin), *self._statements(begin + 1, end)]
        return last != (begin, begin) and self._leaves_for_sure(*last)

    def _statements(self, i: int, end: int) -> Iterator[tuple[int, int]]:
        """The first and the last token of each statement from `i` on; labels of a switch are none."""
        text = self._tokens.text
        while i < end:
            if not text[i]:
                i += 1
            elif text[i] in ("case", "default"):
                i = self._behind(i, ":")
            else:
                last = statement_end(self._tokens, i)
                if last >= end:
                    return  # a `;` is missing, which clang will say
                yield i, last
                i = last + 1

    def _behind(self, i: int, sign: str) -> int:
        """The index behind the next `sign` that no bracket holds; behind all tokens if there is none."""
        text, pair = self._tokens.text, self._tokens.pair
        while i < len(text) and text[i] != sign:
            if i in pair and text[i][:1] in ("(", "[", "{"):
                i = pair[i]
            elif text[i] == "<":
                i = self._tokens.close_angle(i) or i
            i += 1
        return i + 1

    def _meet(self, begin: int, end: int, before: str, after: str) -> None:
        """Puts a meeting around the value of tokens `begin` to `end - 1`, where it may part the lanes."""
        declares = not {"=", ";"}.isdisjoint(self._tokens.text[begin:end])
        if begin < end and not declares and self._may_part(begin, end - 1):
            self._tokens.text[begin - 1] += before
            self._tokens.text[end] = after + self._tokens.text[end]

    def _may_part(self, begin: int, end: int, communicates: bool = False) -> bool:
        """Whether lanes may come apart in tokens `begin` to `end`; a loop in which they talk ends for all."""
        text = self._tokens.text
        if communicates and text[begin] in _CONTROL:
            return False
        for i in range(begin, end + 1):
            token = text[i]
            if token in _PARTING or (token in self._functions and is_call(text, i)):
                return True
            is_called = text[i + 1 : i + 2] == ["("] and token.isidentifier()
            if is_called and token not in _ONE_STEP and _OPERATION.fullmatch(token) is None:
                return True
        return False
