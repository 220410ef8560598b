"""An audit names what it finds while it runs, and says when it ends only once that can be foreseen."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.new_findings import NewFindings
from mpsmith.audit.running.progress import AuditProgress, cost_of
from mpsmith.audit.running.runner import audit_into
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind
from support.fake_machines import fake_execution


def test_each_finding_is_said_once() -> None:
    batches = [(5, [("erfc", "wrong"), ("mode", "fallback")]), (9, [("erfc", "wrong"), ("frexp", "fallback")])]
    asked: list[int] = []

    def findings_after(run: int, number: int) -> Any:
        asked.append(number)
        return batches.pop(0)

    said: list[str] = []
    counted: list[int] = []
    listener = SimpleNamespace(advance=lambda cases, **more: counted.append(cases))
    findings = NewFindings(SimpleNamespace(findings_after=findings_after), 1, listener, said.append)  # type: ignore[arg-type]
    findings.advance(3)
    findings.print_new()
    findings.print_new()
    assert counted == [3]
    assert asked == [0, 5]
    assert said == [
        "  found: wrong in some case: erfc",
        "  found: runs on the CPU: mode",
        "  found: runs on the CPU: frexp",
    ]


def test_the_time_left_is_said_from_a_tenth_on() -> None:
    stream = io.StringIO()
    with AuditProgress("audit", [1.0] * 100, stream) as progress:
        for _ in range(9):
            progress.advance(1)
        progress._print_line()
        progress.advance(1)
        progress._print_line()
    before, after = stream.getvalue().splitlines()
    assert "left" not in before
    assert "left" in after


@pytest.mark.parametrize(("share", "seconds"), [(0, 0), (0.1, 0), (0, 30)])
def test_the_time_left_weighs_groups_and_counts_what_follows(
    share: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("mpsmith.audit.running.progress.time.monotonic", lambda: now[0])
    costs = [cost_of("errors")] * 50 + [cost_of("schema element-wise kernels")] * 50
    progress = AuditProgress("audit", costs, io.StringIO(), share_after=share, seconds_after=seconds)
    now[0] += 8  # the workers start
    for cost in costs[:75]:
        now[0] += cost / 1000
        progress.advance(1)
    left = progress.seconds_left()
    assert left is not None
    rest = sum(costs[75:]) / 1000
    assert left == pytest.approx(rest + share * (now[0] + rest) + seconds)


def test_strict_mode_and_the_report_follow_the_cases(tmp_path: Path) -> None:
    opened: dict[str, dict[str, float]] = {}

    def progress(title: str, costs: list[float], **after: float) -> AuditProgress:
        opened[title] = after
        return AuditProgress(title, costs, io.StringIO(), **after)

    settings = Settings(device=DeviceKind.SIMULATED, ops=("op1", "op2", "op3", "op4"))
    with Store.open_or_create(tmp_path / "store.sqlite") as store:
        audit_into(store, settings, None, print, fake_execution, progress)
    assert opened["audit"]["share_after"] > opened["strict"]["share_after"] == 0
    assert opened["strict"]["seconds_after"] > opened["audit"]["seconds_after"] == 0
