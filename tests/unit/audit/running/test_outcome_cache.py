"""Outcomes of compiled calls are known again where all that decides them is the same, and asked for where not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict, FaultyStage
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.outcome_cache import OutcomeCache, outcome_cache

WRONG = CompiledOutcome(
    CompiledVerdict.WRONG,
    Outcome(CaseVerdict.WRONG, "backward", "1 of 3", ("aten::mode",), max_error=float("inf"), seconds=0.5),
    aten=("aten::mm",),
    kernels=2,
    graphs=1,
    breaks=("a call",),
    reason="backward: 1 of 3",
    line="x",
    faulty_stage=FaultyStage.INDUCTOR,
    source="kernel void f() {}",
)
LABEL = "opinfo:sin:float32:0:compiled"
ENVIRONMENT = {"simulated": True, "torch": "2.13.0", "profile": "2.13.0"}


class Judging:
    """Says the same each time, and counts how often it was asked."""

    def __init__(self, outcome: CompiledOutcome = WRONG) -> None:
        self.outcome = outcome
        self.asked = 0

    def __call__(self) -> CompiledOutcome:
        self.asked += 1
        return self.outcome


def test_the_next_audit_uses_a_cached_outcome(tmp_path: Path) -> None:
    judging = Judging()
    assert OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging) == WRONG
    assert OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging) == WRONG
    assert judging.asked == 1


@pytest.mark.parametrize(("decided_by", "label"), [("b", LABEL), ("a", "opinfo:sin:float32:1:compiled")])
def test_another_case_or_other_code_is_judged_again(decided_by: str, label: str, tmp_path: Path) -> None:
    judging = Judging()
    OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging)
    OutcomeCache(tmp_path, decided_by).outcome_of(label, judging)
    assert judging.asked == 2


@pytest.mark.parametrize("verdict", [CompiledVerdict.CRASH, CompiledVerdict.TIMEOUT, CompiledVerdict.REFERENCE_FAILED])
def test_does_not_cache_unstable_outcomes(verdict: CompiledVerdict, tmp_path: Path) -> None:
    judging = Judging(replace(WRONG, verdict=verdict))
    for _ in range(2):
        OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging)
    assert judging.asked == 2


def test_drops_the_source_of_right_outcomes(tmp_path: Path) -> None:
    right = replace(WRONG, verdict=CompiledVerdict.METAL)
    for expected in (right, replace(right, source="")):
        assert OutcomeCache(tmp_path, "a").outcome_of(LABEL, Judging(right)) == expected


def test_a_damaged_entry_and_a_folder_that_refuses_cost_time_alone(tmp_path: Path) -> None:
    judging = Judging()
    OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging)
    (entry,) = tmp_path.rglob("*.json")
    entry.write_text("{}")
    assert OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging) == WRONG
    (tmp_path / "file").touch()
    assert OutcomeCache(tmp_path / "file", "a").outcome_of(LABEL, judging) == WRONG
    assert judging.asked == 3


def test_the_key_holds_everything_decisive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    judging, plain = Judging(), Settings()
    others = [(plain, ENVIRONMENT), (replace(plain, seed=1), ENVIRONMENT), (plain, {**ENVIRONMENT, "torch": "2.14.0"})]
    for settings, environment in (*others, *others):
        cache = outcome_cache(settings, environment)
        assert cache is not None
        cache.outcome_of(LABEL, judging)
    assert judging.asked == len(others)
    monkeypatch.setenv("TORCHINDUCTOR_EXAMPLE", "1")
    cache = outcome_cache(plain, ENVIRONMENT)
    assert cache is not None
    cache.outcome_of(LABEL, judging)
    assert judging.asked == len(others) + 1


def test_does_not_cache_for_macs_or_imported_code() -> None:
    assert outcome_cache(Settings(), {**ENVIRONMENT, "simulated": False}) is None
    assert outcome_cache(Settings(imports=("theirs",)), ENVIRONMENT) is None
    assert outcome_cache(Settings(faults=("a fault",)), ENVIRONMENT) is None


def test_two_audits_share_one_cache(tmp_path: Path) -> None:
    """Both ask for one case at once: each has its answer, and the next audit finds one."""
    both, judging = threading.Barrier(2), Judging()

    def judged_at_once() -> CompiledOutcome:
        both.wait(timeout=60)
        return judging()

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(OutcomeCache(tmp_path, "a").outcome_of, LABEL, judged_at_once) for _ in range(2)]
    assert [future.result() for future in asked] == [WRONG, WRONG]
    assert OutcomeCache(tmp_path, "a").outcome_of(LABEL, judging) == WRONG
    assert judging.asked == 2
    assert len(list(tmp_path.rglob("*.json"))) == 1
