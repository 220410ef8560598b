"""Tries this machine's real mps device before anything relies on it: an audit, evidence, the verification of kernels.

The steps run in a separate process (`preflight_steps`), which may crash or hang.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import MpsmithError
from ...simulator.opening import DeviceKind
from .machine import is_mac
from .privacy import PrivateNames, message_of
from .schema import LONGEST_MESSAGE, PreflightPart

COMMAND = (sys.executable, "-c", "from mpsmith.reports.evidence.preflight_steps import main; raise SystemExit(main())")
# Of wall time; a Mac needs most of it to compile the kernels for the first time.
SECONDS = 120.0
BEGINS = "preflight: trying the mps device of this machine (under 2 minutes)"


class PreflightError(MpsmithError):
    """The real mps device of this machine does not work, so nothing may be concluded from it."""


@dataclass(frozen=True)
class Preflight:
    """The result of preflight.

    Attributes:
        steps: the steps that passed, in their order, and what each saw.
        problem: the step that failed and why; "" if all passed.
        seconds: how long it took.
    """

    steps: dict[str, str]
    problem: str
    seconds: float

    def part(self, private: PrivateNames) -> PreflightPart:
        """Its part of an evidence file."""
        steps = {name: message_of(note, private, LONGEST_MESSAGE) for name, note in self.steps.items()}
        return PreflightPart(steps=steps, seconds=round(self.seconds, 1))


def preflight(command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Preflight:
    """Run the steps in a separate process. Never raises."""
    begun = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        stdout, ended = done.stdout, _ended(done.returncode, done.stderr)
    except subprocess.TimeoutExpired as expired:
        stdout, ended = expired.stdout or b"", f"does not end within {seconds:.0f} s"
    except OSError as error:
        stdout, ended = b"", f"does not start: {error}"
    steps, problem = _read(stdout.decode(errors="replace"), ended)
    return Preflight(steps, problem, time.monotonic() - begun)


def _read(said: str, ended: str) -> tuple[dict[str, str], str]:
    """The steps that passed and the problem, from the lines of the process and from how it ended."""
    steps: dict[str, str] = {}
    current = "start"
    for line in said.splitlines():
        try:
            row: dict[str, str] = json.loads(line)
        except ValueError:
            continue  # a library's own words
        if "failed" in row:
            return steps, f"{row['failed']}: {row['why']}"
        if "passed" in row:
            steps[row["passed"]] = row["note"]
        current = row.get("begins", current)
    return steps, f"{current}: its process {ended}" if ended else ""


def _ended(code: int, stderr: bytes) -> str:
    """How a process ended, with its last line; "" for a process that ended well."""
    if code == 0:
        return ""
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    how = f"ends with {signal.Signals(-code).name}" if code < 0 else f"ends with exit code {code}"
    return f"{how}: {' '.join(lines[-1].split())[:300]}" if lines else how


def require_working_device(
    kind: DeviceKind, say: Callable[[str], None], run: Callable[[], Preflight] = preflight
) -> Preflight | None:
    """Try the real device of this machine if a command is about to use it.

    Returns what preflight saw; None for the simulated device, which needs none. Raises PreflightError if a step fails.
    """
    if kind is DeviceKind.SIMULATED or not is_mac():
        return None
    say(BEGINS)
    result = run()
    if result.problem:
        raise PreflightError(
            f"the mps device of this machine does not work, so nothing was run. Preflight failed at {result.problem} "
            f"({what_to_do(result.problem)}; `mpsmith preflight` tries again)"
        )
    return result


def what_to_do(problem: str) -> str:
    """A next step for the user after a problem."""
    is_missing = problem.startswith("device:")
    return "mps needs Apple silicon with macOS 14 or newer" if is_missing else "restart the Mac or free memory"
