"""A worker's death in one line, which is the same whenever it dies of the same."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pebble import ProcessExpired

from mpsmith.audit.running.worker_exit import WorkerExit, exit_of, last_output, log_path


def expired(exitcode: int, pid: int = 7) -> ProcessExpired:
    return ProcessExpired("Abnormal termination", code=exitcode, pid=pid)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("free(): invalid pointer", "free(): invalid pointer"),
        ("[E1122 00:27:50.123456789 Thing.cpp:12] went wrong", "went wrong"),
        ("E1122 00:27:50.123456   4321 thing.cc:12] went wrong", "went wrong"),
        ("F20261122 00:27:50.123456 4321 thing.cc:12] went wrong", "went wrong"),
        (
            "2026-11-22 00:27:50.123 python[4321:98765] -[MTL thing]: failed assertion",
            "python -[MTL thing]: failed assertion",
        ),
        ("2026-11-22T00:27:50Z terminate called", "terminate called"),
        ("==4321==ERROR: AddressSanitizer: SEGV on 0x7f3a12345678", "ERROR: AddressSanitizer: SEGV on 0x…"),
        ("process 4321 died, pid: 99, Thread 5", "process … died, pid: …, Thread …"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("cannot open /tmp/tmpab12_x9z/file", "cannot open /tmp/tmp…/file"),
        ("expected 3 dimensions, 0xff flags", "expected 3 dimensions, 0xff flags"),
        ("lists[0]: index 3", "lists[0]: index 3"),
        ("python3[4321]: double free", "python3: double free"),
    ],
)
def test_last_output_has_no_parts_that_differ_between_runs(tmp_path: Path, line: str, words: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"before\n{line}\n\n")
    assert last_output(log) == words


@pytest.mark.parametrize(
    "idle",
    [
        "USDT: probe",
        "[W1122 00:27:50.123456789 Thing.cpp:12] Warning: slow",
        "I1122 00:27:50.123456 4321 thing.cc:12] all is well",
        "/lib/thing.py:3: UserWarning: deprecated",
        "==4321==",
    ],
)
def test_warnings_are_not_the_cause_of_an_exit(tmp_path: Path, idle: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"double free\n{idle}\n")
    assert last_output(log) == "double free"


def test_an_exit_is_a_signal_or_code_with_the_last_output(tmp_path: Path) -> None:
    log_path(tmp_path, 7).write_text("double free\n")
    assert exit_of(expired(-signal.SIGABRT), tmp_path) == WorkerExit("SIGABRT: double free", words="double free")
    assert exit_of(expired(7, pid=8), tmp_path) == WorkerExit("exit code 7")


@pytest.mark.parametrize("alarm", [signal.SIGPROF, signal.SIGALRM])
def test_a_timeout_has_no_last_output(tmp_path: Path, alarm: signal.Signals) -> None:
    log_path(tmp_path, 7).write_text("working\n")
    assert exit_of(expired(-alarm), tmp_path) == WorkerExit("time-out", timed_out=True)


def test_last_output_is_cut(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 1000)
    assert len(last_output(tmp_path / "log")) == 300
