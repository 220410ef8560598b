"""Runs the tests of a checkout in a worker process, so that a hang or a crash fails only one test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...audit.model.time_limit import WALL_FACTOR
from ...simulator.device import inheritance
from . import pytest_plugin

# Seconds that importing the tests may take beyond the limit of a test: extensions may be built then.
_IMPORTING = 600.0
_POLL = 0.05
# A test that used less than this share of the limit does not wait for a processor: it sleeps.
_IDLE = 0.01
# How the simulated device's message about a fault begins (simulator/objc/torch_host/tensor_memory.mm).
_OURS = "mpsmith: the host "
_LAST_LINES = 4
_COLOR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class TestEnd:
    """How one test ended.

    Attributes:
        test: its name, as pytest writes it; of a file that cannot be imported, the file.
        outcome: `passed`, `failed`, `skipped`, `hung` or `died`; `invalid` if Metal's validation found an error and the
            test continued.
        text: the exception, the reason, or the signal and the last output of the process.
        kinds: the names of the exception's classes, the most derived first.
        ours: whether mpsmith raised it, or the simulated device reported why the process died.
        diagnostics: the compiler's errors in it.
    """

    __test__ = False  # not a class of tests

    test: str
    outcome: str
    text: str = ""
    kinds: tuple[str, ...] = ()
    ours: bool = False
    diagnostics: tuple[Mapping[str, Any], ...] = ()


@dataclass
class _Events:
    """The events that the worker has written so far."""

    path: Path
    on_found: Callable[[Iterable[str]], None]
    session: int = 0
    running: str = ""
    since: float = field(default_factory=time.monotonic)
    used: float = 0.0
    collected: bool = False
    _offset: int = 0

    def read(self) -> Iterator[TestEnd]:
        """The tests that have ended since the last call."""
        with self.path.open(encoding="utf-8") as file:
            file.seek(self._offset)
            lines = file.readlines()
            if lines and not lines[-1].endswith("\n"):
                lines.pop()
        if lines:
            self.since, self.used = time.monotonic(), _processor_seconds(self.session)
        for line in lines:  # an interrupt may come between two
            self._offset += len(line.encode())
            event = json.loads(line)
            kind = event.pop("event")
            if kind == "collected":
                self.collected = True
                self.on_found(event["tests"])
            elif kind == "start":
                self.running = event["test"]
            else:
                kinds, diagnostics = tuple(event.pop("kinds", ())), tuple(event.pop("diagnostics", ()))
                yield TestEnd(**event, kinds=kinds, diagnostics=diagnostics)

    def too_long(self, limit: float) -> str:
        """How long the running test has taken, as text, if that is too long; else "".

        On a busy machine it may wait for a processor. Then its processor time counts, up to a limit of wall time.
        """
        took = time.monotonic() - self.since
        if took <= limit:
            return ""
        used = _processor_seconds(self.session) - self.used
        if not _IDLE * limit < used < limit:
            return f"{limit:g} s"
        most = limit * WALL_FACTOR
        return f"{most:g} s, with {used:.0f} s of processor time" if took > most else ""

    def findings(self) -> Iterator[TestEnd]:
        """Errors of Metal's validation in a test that did not finish."""
        if (file := Path(f"{self.path}-findings")).is_file():
            for text in dict.fromkeys(file.read_text("utf-8").splitlines()):
                yield TestEnd(self.running, "invalid", text)


def run_tests(
    folder: Path,
    files: Sequence[Path],
    path: Sequence[Path],
    limit: float,
    environment: Mapping[str, str],
    on_found: Callable[[Iterable[str]], None],
    chosen: str = "",
) -> Iterator[TestEnd]:
    """Run the tests, and yield the end of each as soon as it is known.

    Args:
        folder: the working folder.
        files: the files with tests.
        path: the folders that modules are imported from.
        limit: seconds of one test: wall time, or processor time if the test waits for a processor.
        environment: more environment variables.
        on_found: called with the tests that were found in the files.
        chosen: only tests that match, as pytest's -k.
    """
    with tempfile.TemporaryDirectory(prefix="mpsmith-try-") as temporary:
        finished = Path(temporary) / "finished"
        finished.touch()
        for number in range(10_000):
            events = _Events(Path(temporary) / f"events-{number}", on_found)
            events.path.touch()
            variables = {
                pytest_plugin.EVENTS: str(events.path),
                pytest_plugin.FINISHED: str(finished),
                pytest_plugin.FINDINGS: f"{events.path}-findings",
                inheritance.VARIABLE: "1",
                "PYTHONPATH": os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            }
            log = Path(temporary) / "log"
            arguments = [*map(str, files), "-k", chosen]
            stopped = yield from _one_process(folder, arguments, log, limit, events, dict(environment) | variables)
            if stopped is None:
                return
            yield stopped
            if not events.running:
                return
            with finished.open("a", encoding="utf-8") as file:
                file.writelines(f"{end}\n" for end in _ended(events.path))


def _ended(events: Path) -> list[str]:
    """The tests that a process started."""
    rows = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    return list(dict.fromkeys(row["test"] for row in rows if row["event"] == "start"))


def _one_process(
    folder: Path, arguments: Sequence[str], log: Path, limit: float, events: _Events, environment: Mapping[str, str]
) -> Generator[TestEnd, None, TestEnd | None]:
    """Run the tests that are left; returns the test that ended the process, or None if pytest finished."""
    words = [sys.executable, "-m", "pytest", *arguments, "-q", "-p", pytest_plugin.__name__]
    words += ["-p", "no:cacheprovider", "-o", "addopts=", "--continue-on-collection-errors", f"--rootdir={folder}"]
    # A message about a fault goes to the file of standard error, and pytest prints nothing on its line.
    words += ["--capture=sys", "-o", "console_output_style=classic"]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    with log.open("w") as output:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=inherited | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    events.session = process.pid
    try:
        while process.poll() is None:
            yield from events.read()
            if took := events.too_long(limit if events.running else limit + _IMPORTING):
                yield from events.findings()
                return TestEnd(events.running or "the import of the tests", "hung", took)
            time.sleep(_POLL)
        yield from events.read()
        yield from events.findings()
    except KeyboardInterrupt:
        yield from events.read()
        yield from events.findings()
        raise
    finally:
        _end(process)
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        last = _last_output(log.read_text("utf-8", "replace"))
        text = f"{name}: {last.removeprefix(_OURS)}" if last else name
        return TestEnd(events.running or "the import of the tests", "died", text, ours=last.startswith(_OURS))
    if not events.collected or process.returncode not in (0, 1, 2, 5):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return TestEnd("pytest", "failed", lines[-1] if lines else f"exit status {process.returncode}")
    return None


def _last_output(log: str) -> str:
    """The simulated device's last message about a fault; else the last lines before Python's report of the signal."""
    before, _, report = log.partition("Fatal Python error: ")
    faults = [line for line in log.splitlines() if line.startswith(_OURS)]
    lines = [_COLOR.sub("", line).strip() for line in before.splitlines()]
    return faults[-1] if faults else "; ".join([*filter(None, lines)][-_LAST_LINES:]) if report else ""


def _processor_seconds(session: int) -> float:
    """The processor time of all processes of a session, and of their children that have ended."""
    ticks = 0
    for folder in Path("/proc").iterdir():  # glob raises where a process ends meanwhile
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
