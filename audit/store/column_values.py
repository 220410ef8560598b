"""Builds values from the columns of a results store's rows."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...simulator.upstream.host_work import HostWork
from ..compiled.verdicts import CompiledOutcome, CompiledVerdict, FaultyStage, of_uncompiled
from ..model.group import GroupKey
from ..model.launches import Launches
from ..model.verdicts import CaseVerdict, Outcome

OUTCOME_COLUMNS = "c.verdict, c.stage, c.message, c.fallbacks, c.compared, c.max_error, c.backward, c.seconds"
COMPILED_COLUMNS = (
    "k.verdict, k.aten, k.kernels, k.graphs, k.breaks, k.recompilations, k.reason, k.line, k.faulty_stage, k.source"
)


def host_work_from(calls: int, graphs: int, waits: int, on_cpu: str) -> HostWork:
    """The work of an overload's kernel from the columns of a row."""
    return HostWork(calls, graphs, waits, Counter(json.loads(on_cpu)))


def launches_from(cases: int, calls: int, kernels: str, stood_in: str) -> Launches:
    """The launches of an overload from the columns of a row."""
    return Launches(calls, _counter(kernels), _counter(stood_in), cases)


def _counter(text: str) -> Counter[str]:
    """The counts of a JSON object. Most are empty or have one name; Counter(...) would take twice as long."""
    counts: Counter[str] = Counter()
    if text != "{}":
        dict.update(counts, json.loads(text))
    return counts


_VERDICTS = {verdict.value: verdict for verdict in CaseVerdict}


class ColumnReader:
    """Reads columns. Equal group keys and lists of names, which thousands of cases share, become one object."""

    def __init__(self) -> None:
        self._key: list[str] = []
        self._group = GroupKey("", "", "", "", "")
        self._lists: dict[str, tuple[str, ...]] = {"[]": ()}

    def group(self, key: list[str]) -> GroupKey:
        """The group with this key; rows of the same group must be consecutive to share it."""
        if key != self._key:
            self._key, self._group = key, GroupKey(*key)
        return self._group

    def names(self, text: str) -> tuple[str, ...]:
        """The names in a JSON list."""
        if text not in self._lists:
            self._lists[text] = tuple(json.loads(text))
        return self._lists[text]

    def outcome(self, columns: Sequence[Any]) -> Outcome:
        """The outcome in OUTCOME_COLUMNS."""
        verdict, stage, message, fallbacks, compared, max_error, backward, seconds = columns
        return Outcome(
            _VERDICTS[verdict], stage, message, self.names(fallbacks), compared, max_error, bool(backward), seconds
        )


def compiled_outcome_from(outcome: Outcome, columns: Sequence[Any]) -> CompiledOutcome:
    """The outcome in the columns of `compiled`; all are NULL if only the judge's outcome was recorded."""
    verdict, aten, kernels, graphs, breaks, recompilations, reason, line, faulty_stage, source = columns
    if verdict is None:
        return CompiledOutcome(of_uncompiled(outcome), outcome, reason=outcome.message)
    return CompiledOutcome(
        CompiledVerdict(verdict),
        outcome,
        tuple(json.loads(aten)),
        kernels,
        graphs,
        tuple(json.loads(breaks)),
        recompilations,
        reason,
        line,
        FaultyStage(faulty_stage) if faulty_stage else None,
        zlib.decompress(source).decode() if source else "",
    )
