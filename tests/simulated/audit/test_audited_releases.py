"""`audit --releases` from pip to the matrix, with environments that pip makes from wheels posing as two releases.

What the torch of another release computes is not shown here: both are the installed one. That venv, pip, the audit in
the other environment, the one store, the matrix and --resume go together is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.findings.store import Store
from mpsmith.audit.running import release_environment
from mpsmith.simulator.device.build import libraries_folder
from support.posed_releases import write_wheels

RELEASES = ("2.13.0", "2.15.0")
NARROW = ("--ops", "mode,heaviside", "--dtypes", "float32", "--sources", "opinfo", "--samples", "quick")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Those of a process for which pip has these releases alone, with the device that is built already."""
    others = [line.split("==") for line in release_environment._requirements(RELEASES[0]) if "torch==" not in line]
    write_wheels(tmp_path / "wheels", RELEASES, [(name, version) for name, version in others])
    cache = tmp_path / "cache" / libraries_folder().name
    cache.mkdir(parents=True)
    for built in libraries_folder().glob("torch-2.13.0*"):
        for release in RELEASES:
            (cache / built.name.replace("2.13.0+cpu", release)).symlink_to(built)
    chosen = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels"), "MPSMITH_CACHE": str(cache.parent)}
    return {**os.environ, **chosen}


@pytest.mark.rehearsal
def test_releases_are_audited_each_in_its_environment_and_set_side_by_side(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "mpsmith", "audit", "--releases", ",".join(RELEASES), *NARROW, "--workers", "1"]

    def audited(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=580, check=True
        )

    first = audited()
    for release in RELEASES:
        assert f"making an environment with torch {release}" in first.stderr
    with Store.open(tmp_path / "audit.sqlite") as store:
        runs = store.runs()
        counts = [{(c.group, c.verdict): c.cases for c in store.case_counts(run.id)} for run in runs]
    assert [(run.environment["torch"], run.environment["profile"]) for run in runs] == [(r, r) for r in RELEASES]
    assert all(run.finished for run in runs)
    assert all(counts)
    assert "overloads differ (SIMULATED)" in first.stdout
    assert "torch 2.13.0 is run 1, torch 2.15.0 is run 2" in first.stdout
    again = audited("--resume")
    assert "torch 2.15.0: run 2 is finished" in again.stderr
    assert "making an environment" not in again.stderr
