"""The call that a worker made last is read back when the worker is dead."""

from __future__ import annotations

import os
from pathlib import Path

from mpsmith.audit.model.verdicts import AtFault
from mpsmith.audit.running import last_call
from mpsmith.audit.running.worker_exit import WorkerExit

SEGFAULT = WorkerExit("SIGSEGV: no memory there")


def written(folder: Path, *calls: tuple[str, str]) -> Path:
    path = last_call.path_of(folder / "7.marker")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    for overload, call in calls:
        last_call.note(descriptor, overload, call)
    os.close(descriptor)
    return path


def test_the_last_call_is_at_fault(tmp_path: Path) -> None:
    path = written(tmp_path, ("aten::logsumexp.out", "(float32[3, 5], [1])"), ("aten::amax", "(float32[3])"))
    assert path == tmp_path / "7.call"
    assert last_call.read(path, SEGFAULT) == AtFault(
        "aten::amax", "(float32[3])", "ends the process: SIGSEGV: no memory there"
    )
    assert last_call.read(path, WorkerExit("time-out", timed_out=True)) == AtFault(
        "aten::amax", "(float32[3])", "does not return"
    )


def test_between_calls_none_is_at_fault(tmp_path: Path) -> None:
    assert last_call.read(written(tmp_path, ("aten::amax", "(float32[3])"), ("", "")), SEGFAULT) is None


def test_without_a_call_file_no_call_is_at_fault(tmp_path: Path) -> None:
    assert last_call.read(tmp_path / "8.call", SEGFAULT) is None
