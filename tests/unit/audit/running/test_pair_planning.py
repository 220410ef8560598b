"""Which calls are planned for pairs of levels that no case was at."""

from __future__ import annotations

import os
import signal
from itertools import product

import pytest

from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.planned_pairs import Planned, at_levels, calls_of
from mpsmith.audit.findings.pairs_seen import argument_levels
from mpsmith.audit.model.case import CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running import pair_planning
from mpsmith.audit.running.pair_planning import in_separate_process, open_pairs, planned_for
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo

SOURCES: dict[str, CaseSource] = {"opinfo": OpInfoSource()}
GROUPS = [opinfo("clamp"), opinfo("clamp", dtype="int64")]
FLAGS = [("1", "None"), ("2", "None")]


def levels_brought(planned: Planned) -> set[tuple[str, str]]:
    source = SOURCES["opinfo"]
    case = at_levels(source, planned, calls_of(source, planned.base)[planned.call])
    return {*levels_of(case), ("dtype", planned.dtype)}


def test_a_call_is_planned_for_pairs_that_the_cpu_accepts() -> None:
    levels = [("layout", "transposed"), ("dtype", "int64")]
    arguments = {
        level for call in calls_of(SOURCES["opinfo"], GROUPS[0]).values() for level in argument_levels(levels_of(call))
    }
    wanted = set(product(arguments, levels))
    left = set(wanted)
    planned = list(planned_for(SOURCES, GROUPS, left))
    assert planned
    assert all(levels_brought(each) & set(levels) for each in planned)
    assert len(left) < len(wanted) / 2, "what is brought is not open any more"
    refused = {(argument, ("dtype", "bool")) for argument in arguments}
    assert not list(planned_for(SOURCES, GROUPS, refused))


def test_what_was_planned_before_the_process_died_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Planned(GROUPS[0], "0a1b2c3d", "int64", (("layout", "offset"), ("size", "over 65,536")))

    def dying(*_: object):
        yield found
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pair_planning, "planned_for", dying)
    assert in_separate_process(SOURCES, GROUPS, set()) == (found,)


def test_open_are_the_pairs_of_all_levels_that_no_case_was_at(store: Store) -> None:
    recording = begun(store)
    at = {
        GROUPS[0]: [("0", "1"), ("layout", "contiguous")],
        GROUPS[1]: [("0", "2"), ("layout", "transposed")],
        GroupKey("planned pairs", "clamp", "", "float32", "fallback"): [("0", "1"), ("layout", "transposed")],
    }
    for key, levels in at.items():
        recording.add(key, Outcome(CaseVerdict.PASSED))
        group = next(group.id for group in store.groups(recording.run.id) if group.key == key)
        store.add_covered(group, 0, {0: tuple(levels)})
    wanted, groups = open_pairs(store, recording.run.id)
    assert groups == {"clamp": GROUPS}
    assert wanted["clamp"] == {
        (("0", "1"), ("layout", "transposed")),
        (("0", "1"), ("dtype", "int64")),
        (("0", "2"), ("layout", "contiguous")),
        (("0", "2"), ("dtype", "float32")),
    }
