"""Rules explain the defects of shipped kernels, and nothing that is wrong beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.explanations import explainer_of
from mpsmith.audit.model.verdicts import CaseVerdict, Grade
from mpsmith.audit.store.records import StoredCase
from mpsmith.audit.store.store import Store

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

TESTS = Path(__file__).parents[2]
# Each has a rule about values: a formula, a loss of NaN, an overflow, the CPU's own defects.
OPERATORS = "erfc,elu,abs,logaddexp,linalg.vector_norm,nn.functional.grid_sample"


def audited(store: Path, *more: str) -> list[tuple[StoredCase, str]]:
    """The wrong cases of shipped kernels, each with the rule that explains it."""
    chosen = ("--ops", OPERATORS, "--dtypes", "float32,complex64,int64", "--samples", "quick", "--shipped", "2.13.0")
    path = os.pathsep.join((str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])))
    command = [sys.executable, "-m", "mpsmith", "audit", *chosen, "--store", str(store), *more]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with Store.open(store) as opened:
        run = opened.latest_run()
        explainer = explainer_of(run, audited_surface(run))
        wrong = (case for case in opened.cases(run.id) if case.outcome.verdict is CaseVerdict.WRONG)
        of_kernels = [case for case in wrong if case.grade is Grade.SHIPPED_KERNEL]
        rules = [explainer.rule_for(case) for case in of_kernels]
    return [(case, rule.name if rule else "") for case, rule in zip(of_kernels, rules, strict=True)]


def test_no_rule_explains_a_corrupted_result(tmp_path: Path) -> None:
    before = audited(tmp_path / "before.sqlite")
    corrupted = audited(tmp_path / "corrupted.sqlite", "--import", "support.corrupted_results")

    assert len(before) > 20
    assert all(rule for _, rule in before)
    assert len(corrupted) > 5 * len(before)
    assert [(case.label, case.outcome.message, rule) for case, rule in corrupted if rule] == []
