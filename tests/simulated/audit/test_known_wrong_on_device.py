"""The known-wrong corpus on the simulated device: right where nothing is broken, and each report found where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.known_reports import ReportStatus
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind


def statuses(path: Path, ops: tuple[str, ...], *faults: str) -> dict[int, ReportStatus]:
    settings = Settings(
        device=DeviceKind.SIMULATED, workers=1, timeout=20.0, sources=("known wrong",), ops=ops, faults=faults
    )
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        summary = summarize(store, run, audited_surface(run))
    return {r.issue: r.status for r in summary.known_reports if r.status is not ReportStatus.NOT_TRIED}


BACK = {
    150967: ("where", "aten::where.self: values"),
    163327: ("scatter_add_", "aten::scatter_add_: values"),
    187117: ("div", "aten::div.Tensor: values"),
    175192: ("_linalg_solve_ex", "aten::_linalg_solve_ex: aborts"),
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[int, ReportStatus]:
    """The statuses without a fault."""
    return statuses(tmp_path_factory.mktemp("clean") / "store.sqlite", tuple(operator for operator, _ in BACK.values()))


@pytest.mark.parametrize("issue", BACK)
def test_a_bug_that_is_back_is_reported_by_its_issue(
    tmp_path: Path, clean: dict[int, ReportStatus], issue: int
) -> None:
    operator, fault = BACK[issue]
    assert clean[issue] is ReportStatus.DISPATCH_ONLY
    assert statuses(tmp_path / "faulty.sqlite", (operator,), fault)[issue] is ReportStatus.STILL_WRONG


def test_the_cases_run_first_and_carry_the_number_of_their_issue(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    options = ("--samples", "quick", "--ops", "where", "--workers", "1")
    command = [sys.executable, "-m", "mpsmith", "audit", "--device", "simulated", "--store", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    with Store.open(path) as store:
        run = store.latest_run()
        groups = store.groups(run.id)
        (first,) = store.cases(run.id, "c.id = (SELECT min(id) FROM cases)")
    assert {group.key.source for group in groups} > {"known wrong"}
    assert groups[0].key.source == "known wrong"
    assert first.label == "known wrong:where.#150967:bool:0"
    assert first.inputs.startswith("issue #150967, wrong result: ")
    assert first.outcome.verdict is CaseVerdict.PASSED
    shown = subprocess.run(
        [sys.executable, "-m", "mpsmith", "report", "--store", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert "still wrong (simulated)" in shown
