"""The CPU's kernels that are replaced because they are not sound."""

from __future__ import annotations

import subprocess
import sys

REGISTERS = "from mpsmith.audit.cases.calls.cpu_kernels import register; register()"


def test_a_user_sees_no_warning_of_replaced_kernels() -> None:
    done = subprocess.run([sys.executable, "-c", REGISTERS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
