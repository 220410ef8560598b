"""Running the tests that came with a kernel: what counts as accepted, and what a crash is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.building.trial import try_tests
from mpsmith.scaffold.errors import ScaffoldError


def package(folder: Path, tests: str) -> Path:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_kernel.py").write_text(tests)
    return folder


def test_passing_tests_are_accepted(tmp_path: Path) -> None:
    trial = try_tests(package(tmp_path, "def test_one(): pass\ndef test_two(): pass\n"))
    assert (trial.passed, trial.summary, trial.accepted) == (2, "2 passed", True)


def test_a_failed_or_a_skipped_test_is_not_a_pass(tmp_path: Path) -> None:
    tests = "import pytest\ndef test_one(): pass\ndef test_two(): assert 0\ndef test_three(): pytest.skip('x')\n"
    trial = try_tests(package(tmp_path, tests))
    assert (trial.summary, trial.accepted) == ("1 passed, 1 failed, 1 skipped", False)
    (tmp_path / "tests" / "test_kernel.py").write_text("import pytest\ndef test_one(): pytest.skip('x')\n")
    assert not try_tests(tmp_path).accepted


def test_a_crash_ends_the_trial_and_nothing_else(tmp_path: Path) -> None:
    crash = "import os, signal\ndef test_one(): os.kill(os.getpid(), signal.SIGSEGV)\n"
    trial = try_tests(package(tmp_path, crash))
    assert trial.died == "SIGSEGV"
    assert "died of SIGSEGV" in trial.summary
    assert not trial.accepted


def test_without_tests_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="has no tests/"):
        try_tests(tmp_path)


def test_the_device_of_the_caller_is_not_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_SIMULATE", "2.0.1")
    tests = "import os\ndef test_one(): assert 'MPSMITH_SIMULATE' not in os.environ\n"
    assert try_tests(package(tmp_path, tests)).accepted
