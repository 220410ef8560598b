"""Overloads called by name: of classes that no draw finds, without any kernel, and of packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.store.store import Store

HERE = Path(__file__).parent


def audit(store: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpsmith", "audit", "--device", "simulated", "--workers", "1"]
    environment = {**os.environ, "PYTHONPATH": str(HERE), **variables}
    arguments = [*command, "--store", str(store), *options]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=400, env=environment)


def verdicts(store: Path, operator: str, mode: str) -> set[CaseVerdict]:
    with Store.open(store) as opened:
        run = opened.latest_run()
        assert run is not None
        cases = opened.cases(run.id, f"g.operator = '{operator}' AND g.mode = '{mode}'")
        return {case.outcome.verdict for case in cases}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "store.sqlite"
    overloads = (
        "lstm.data,_fused_adam.tensor_lr_out,mm.dtype,_mps_convolution,is_leaf,_make_dual_copy,glu_backward_jvp.out"
    )
    done = audit(path, "--sources", "schema", "--ops", overloads)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("operator", ["lstm.data", "_fused_adam.tensor_lr_out", "is_leaf", "_make_dual_copy"])
def test_overloads_that_want_more_than_a_draw_pass(store: Path, operator: str) -> None:
    assert verdicts(store, operator, "fallback") == {CaseVerdict.PASSED}


def test_a_convolution_of_integers_is_refused_and_any_other_passes(store: Path) -> None:
    assert verdicts(store, "_mps_convolution", "fallback") == {CaseVerdict.PASSED, CaseVerdict.DTYPE_GAP}


def test_an_operator_without_a_kernel_on_any_device_is_missing(store: Path) -> None:
    assert verdicts(store, "mm.dtype", "fallback") == {CaseVerdict.FALLBACK}
    assert verdicts(store, "mm.dtype", "strict") == {CaseVerdict.MISSING}


def test_each_counts_as_executed_in_the_report(store: Path) -> None:
    from mpsmith.audit.findings.summary import summarize
    from mpsmith.audit.releases.surface import installed_surface

    with Store.open(store) as opened:
        run = opened.latest_run()
        assert run is not None
        summary = summarize(opened, run, installed_surface())
    executed = {overload.name for overload in summary.overloads if overload.executed}
    assert {"aten::lstm.data", "aten::mm.dtype", "aten::is_leaf", "aten::glu_backward_jvp.out"} <= executed
    assert summary.not_executed == (), "operators were chosen, so what was left out was left out on purpose"


def test_a_package_without_case_sources_is_audited_by_its_schemas(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    options = ("--import", "foreign_operators", "--ops", "mylib::scaled")
    learned = audit(path, *options, PYTHONPATH=str(HERE))
    assert learned.returncode == 0, learned.stderr
    assert verdicts(path, "mylib::scaled", "fallback") == {CaseVerdict.FALLBACK}
    assert verdicts(path, "mylib::scaled", "strict") == {CaseVerdict.MISSING}
    with Store.open(path) as opened:
        run = opened.latest_run()
        assert run is not None
        inputs = {case.inputs for case in opened.cases(run.id, "g.mode = 'fallback'")}
    assert len(inputs) >= 3
