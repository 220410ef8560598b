"""Which calls are planned for pairs of levels that no case was at."""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path

import pytest

from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.planned_pairs import Planned, at_levels, calls_of
from mpsmith.audit.findings.pairs_seen import argument_levels
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from support import pair_planning
from support.stores import begun, new_store, opinfo

SOURCE = OpInfoSource()
GROUPS = [opinfo("clamp"), opinfo("clamp", dtype="int64")]


def test_a_call_is_planned_for_pairs_that_the_cpu_accepts() -> None:
    calls = calls_of(SOURCE, GROUPS[0]) | calls_of(SOURCE, GROUPS[1])
    arguments = {level for call in calls.values() for level in argument_levels(levels_of(call))}
    levels = {("layout", "transposed"), ("dtype", "int64"), ("values", "nan")}
    wanted = set(product(arguments, levels))
    planned = list(pair_planning.planned_for({"opinfo": SOURCE}, GROUPS, wanted))
    assert planned
    for row in planned:
        assert levels & {*levels_of(at_levels(SOURCE, row, calls[row.call])), ("dtype", row.dtype)}
    assert any(("values", "nan") in row.levels and row.dtype == "float32" for row in planned)
    assert {row.base.dtype for row in planned} == {"float32", "int64"}, "integers have other special values"
    assert len(wanted) < len(arguments), "what is brought is not open any more"


def test_what_was_planned_before_the_process_died_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planned(GROUPS[0], "0a1b2c3d", "int64", (("layout", "offset"), ("size", "over 65,536")))

    def dying(*_: object):
        yield planned
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pair_planning, "planned_for", dying)
    assert pair_planning.in_separate_process() == (planned,)


def test_open_are_the_pairs_of_all_levels_that_no_case_was_at(tmp_path: Path) -> None:
    first, second, contiguous, transposed = ("0", "1"), ("0", "2"), ("layout", "contiguous"), ("layout", "transposed")
    recording = begun(store := new_store(tmp_path))
    for key, levels in zip(GROUPS, [(first, contiguous), (second, transposed)], strict=True):
        recording.add(key, Outcome(CaseVerdict.PASSED))
        store.add_covered(store.groups(recording.run.id)[-1].id, 0, {0: levels})
    wanted, groups = pair_planning.open_pairs(store, recording.run.id)
    assert groups == {"clamp": GROUPS}
    of_dtypes = {(first, ("dtype", "int64")), (second, ("dtype", "float32"))}
    assert wanted == {"clamp": {(first, transposed), (second, contiguous), *of_dtypes}}
