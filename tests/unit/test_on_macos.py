"""`make test` on a Mac, as far as Linux can show: the suite on a system that says macOS. What needs Linux skips."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.reports.evidence.preflight import BEGINS

ROOT = Path(__file__).parents[2]
POSING = ROOT / "tests" / "support" / "posing_as_macos"
pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="this system is macOS already")
# Tests that need Linux and tests that do not; the rehearsal runs the rest.
SMALL = ("tests/unit/simulator/clang", "tests/unit/cli/test_check_command.py", "tests/simulated/objc", "tests/mps")


def on_macos(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(POSING), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def check_tests(*paths: str) -> None:
    done = on_macos(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths)
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "Metal source runs on the host on Linux (x86_64, aarch64) only" in done.stdout


def test_tests_that_need_linux_skip() -> None:
    check_tests(*SMALL)


@pytest.mark.rehearsal
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("folder", ["tests/unit", "tests/simulated"])
def test_all_tests(folder: str) -> None:
    check_tests(folder, "-o", "timeout=0", "--numprocesses", "auto", "tests/unit/cli/test_check_command.py")


def test_make_takes_the_real_device_of_a_mac(tmp_path: Path) -> None:
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "uname").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    recipe = on_macos("make", "--dry-run", "test", PATH=path).stdout
    assert "pytest tests/mps --durations" in recipe
    assert "pytest tests/simulated --numprocesses" not in recipe


def test_doctor_offers_neither_metal_nor_a_simulated_device() -> None:
    done = on_macos(sys.executable, "-m", "mpsmith", "doctor")
    assert done.returncode == 1
    lines = {line[:20].strip(): line[22:].split()[0] for line in done.stdout.splitlines() if line[22:].strip()}
    assert (lines["Metal on the host"], lines["simulated mps device"], lines["real mps device"]) == ("no", "no", "no")


GONE = "no mps device: macOS is older than 14 or there is no Apple GPU"
LINUX = " needs the simulated mps device, which runs on Linux only; this torch is built with mps, for a Mac"


NEED_LINUX = ("self-test", "try .")


@pytest.mark.parametrize("command", ["audit --ops sin", "preflight", "kernels list", "kernels bench mode", *NEED_LINUX])
def test_without_a_usable_gpu_one_line_says_why(command: str, tmp_path: Path) -> None:
    done = on_macos(sys.executable, "-m", "mpsmith", *command.split(), MPSMITH_REGISTRY=str(tmp_path))
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert (command.split()[0] + LINUX if command in NEED_LINUX else GONE) in last
    assert "restart the Mac" not in last
    begun = command not in (*NEED_LINUX, "kernels list")
    assert done.stderr.startswith(BEGINS) == begun
    assert begun or len(done.stderr.splitlines()) == 1
