"""Simulated audits: the rules are the coordinator's, the time is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.running.cluster.scale import (
    SECONDS_TO_START,
    CoordinatorCost,
    RunWorkload,
    coordinator_cost,
    report,
    saturation,
    simulate,
    workload_of,
)
from mpsmith.audit.store.store import Store
from support.audits import make_summary

WORK = RunWorkload([0.05] * 20_000, [5] * 20_000, 1000)
FREE = CoordinatorCost(0.0, 0.0, 0.0)


def test_one_worker_takes_what_its_groups_take() -> None:
    alone = simulate(WORK, 1, FREE)
    assert alone.seconds == pytest.approx(SECONDS_TO_START + 1000, rel=0.01)
    assert alone.cases == 100_000
    assert alone.coordinator_seconds == 0


def test_workers_share_the_work_until_the_coordinator_is_the_limit() -> None:
    assert simulate(WORK, 8, FREE).seconds == pytest.approx(SECONDS_TO_START + 125, rel=0.05)
    dear = CoordinatorCost(0.0, 0.0, 0.001)
    assert saturation(dear, WORK) == pytest.approx(1000)
    limited = simulate(WORK, 200, dear)
    assert limited.seconds >= 100
    assert limited.coordinator_share > 0.8


def test_one_long_group_is_waited_for() -> None:
    work = RunWorkload([0.01] * 999 + [60.0], [1] * 1000, 1000)
    assert simulate(work, 50, FREE).seconds >= 60


def test_a_report_of_a_store(tmp_path: Path) -> None:
    make_summary(tmp_path / "store.sqlite")
    with Store.open(tmp_path / "store.sqlite") as store:
        run = store.latest_run()
        work = workload_of(store, run, 2)
        assert sum(work.cases) == len(list(store.cases(run.id)))
        assert sum(work.seconds) >= sum(case.outcome.seconds for case in store.cases(run.id))
        assert coordinator_cost(store, run).case > 0
    text = report(tmp_path / "store.sqlite", 2, times=3)
    assert f"The run: {3 * sum(work.cases):,} cases" in text
    assert "|      1000 |" in text
    assert "The coordinator is busy all the time at" in text
