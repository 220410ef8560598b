"""`mpsmith check PATH --run`: runs the tests that came with a kernel, on the mps device of this machine.

The tests run in their own process; a crash is a result.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ..errors import ScaffoldError

TESTS = "tests"
# The caller's settings for its own device, which the tests do not inherit.
_CALLERS_VARIABLES = ("MPSMITH_SIMULATE", "MPSMITH_AUTOLOAD", "PYTORCH_ENABLE_MPS_FALLBACK")


@dataclass(frozen=True)
class TrialResult:
    """The result of running tests.

    Attributes:
        folder: their folder.
        passed, failed: how many; errors count as failed.
        skipped: how many were not run.
        died: the signal that ended the process, such as SIGSEGV, or "".
    """

    folder: Path
    passed: int
    failed: int
    skipped: int
    died: str

    @property
    def accepted(self) -> bool:
        """Whether some test ran, and all passed; without an executed test it is not a pass."""
        return self.passed > 0 and not self.failed and not self.skipped and not self.died

    @property
    def summary(self) -> str:
        """The outcome in words."""
        if self.died:
            return f"the process died of {self.died}: the code under test crashed it"
        counts = [f"{self.passed} passed", f"{self.failed} failed", f"{self.skipped} skipped"]
        return ", ".join([counts[0], *(count for count in counts[1:] if not count.startswith("0 "))])


def try_tests(
    path: Path, tests: str = TESTS, *, plugin: str = "", environment: Mapping[str, str] | None = None
) -> TrialResult:
    """Run the tests of a scaffold; their output goes to the terminal.

    `tests`: their folder in it. `plugin`: a module that pytest loads before them; `environment`: more variables.

    Raises:
        ScaffoldError: there are no tests, or they could not be started.
    """
    folder = path / tests
    if not folder.is_dir() or not any(folder.glob("test_*.py")):
        raise ScaffoldError(f"{path} has no {tests}/ with tests to run; `mpsmith scaffold` writes them with a kernel")
    absent = [name for name in ("pytest", "hypothesis") if importlib.util.find_spec(name) is None]
    if absent:
        raise ScaffoldError(f"these tests need {' and '.join(absent)}: pip install 'mpsmith[workbench]'")
    with tempfile.TemporaryDirectory(prefix="mpsmith-trial-") as temporary:
        report = Path(temporary) / "report.xml"
        # The caller's own pytest settings are for the caller's own tests.
        words = [sys.executable, "-m", "pytest", str(folder), "-q", "--no-header", "-p", "no:cacheprovider"]
        words += ["-c", os.devnull, "--rootdir", str(path), f"--junitxml={report}"]
        words += ["-p", plugin] if plugin else []
        own = {name: value for name, value in os.environ.items() if name not in _CALLERS_VARIABLES}
        own.setdefault("MPSMITH_METAL_MODE", "checked")  # races and wrong barriers show there alone
        done = subprocess.run(words, env=own | dict(environment or {}), stdout=sys.stderr, check=False)
        if done.returncode < 0:
            return TrialResult(folder, 0, 0, 0, signal.Signals(-done.returncode).name)
        if not report.is_file():
            raise ScaffoldError(f"the tests in {folder} could not be run: see pytest's message above")
        return _counted(folder, report)


def _counted(folder: Path, report: Path) -> TrialResult:
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))

    def total(name: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return TrialResult(folder, max(total("tests") - failed - skipped, 0), failed, skipped, "")
