"""What the parent makes of a worker that ended inside a shipped kernel: a crash is recorded, a slow case run again."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pebble import ProcessExpired

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.running.isolated import IsolatedExecution
from mpsmith.audit.running.worker_tasks import MARK, ON_DEVICE, RERUN, Task
from mpsmith.audit.shipped.kernels import LONGEST_NAME, crashing_kernels, running_file, slow_positions
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo

PID = 4711


WRONG = Outcome(CaseVerdict.WRONG, "forward", "1 of 4 elements differ")


def ended_in(store: Store, scratch: Path, kernel: str, exitcode: int, stage: int = ON_DEVICE) -> tuple[bool, int]:
    """Whether the group goes on after its case 5 ended its worker inside a kernel, and the group."""
    recording = begun(store, None, {"shipped": "2.13.0"})
    recording.add(opinfo("sort"), done=False)
    group = store.groups(recording.run.id)[-1].id
    running_file(scratch, PID).write_bytes(kernel.encode().ljust(LONGEST_NAME, b"\0"))
    marker = scratch / "marker"
    marker.write_bytes(MARK.pack(group, 5, stage))
    if stage == RERUN:
        store.add_case(group, 5, WRONG, "")
    execution = IsolatedExecution(Settings(), store, scratch)
    execution._attribute_crash = lambda *_: None  # type: ignore[method-assign]
    task = Task(group, opinfo("sort"), marker)
    return execution._record_exit(None, task, ProcessExpired("gone", exitcode, PID), 1), group  # type: ignore[arg-type]


def test_a_crash_inside_a_kernel_is_that_cases_and_names_it(store: Store, tmp_path: Path) -> None:
    audit_continues, group = ended_in(store, tmp_path, "sort_block", -signal.SIGSEGV)
    (case,) = store.cases(store.latest_run().id)
    assert audit_continues
    assert (case.outcome.verdict, case.outcome.message) == (
        CaseVerdict.CRASH,
        "SIGSEGV in the shipped kernel sort_block",
    )
    assert (case.grade, case.kernels) == (Grade.SHIPPED_KERNEL, ("sort_block",))
    assert crashing_kernels(tmp_path) == ["sort_block"]
    assert slow_positions(tmp_path, group) == frozenset()


def test_a_kernel_that_does_not_end_in_time_has_its_case_run_again(store: Store, tmp_path: Path) -> None:
    audit_continues, group = ended_in(store, tmp_path, "sort_block", -signal.SIGPROF)
    assert audit_continues
    assert list(store.cases(store.latest_run().id)) == []
    assert slow_positions(tmp_path, group) == {5}
    assert crashing_kernels(tmp_path) == []


def test_an_end_outside_of_any_kernel_is_the_cases(store: Store, tmp_path: Path) -> None:
    ended_in(store, tmp_path, "", -signal.SIGPROF)
    (case,) = store.cases(store.latest_run().id)
    assert (case.outcome.verdict, case.outcome.message, case.grade) == (
        CaseVerdict.TIMEOUT,
        "time-out",
        Grade.DISPATCH_ONLY,
    )


@pytest.mark.parametrize(
    ("kernel", "exitcode", "cause"),
    [
        ("", -signal.SIGSEGV, "SIGSEGV"),
        ("", -signal.SIGPROF, "time-out"),
        ("sort_block", -signal.SIGSEGV, "SIGSEGV in the shipped kernel sort_block"),
    ],
)
def test_a_case_that_ends_its_worker_when_it_runs_again_says_so(
    store: Store, tmp_path: Path, kernel: str, exitcode: int, cause: str
) -> None:
    audit_continues, _ = ended_in(store, tmp_path, kernel, exitcode, RERUN)
    (case,) = store.cases(store.latest_run().id)
    assert audit_continues
    assert case.outcome.verdict is CaseVerdict.WRONG
    assert case.outcome.message == f"1 of 4 elements differ; running it again ends in {cause}"


@pytest.mark.parametrize(
    ("host_code", "exitcode", "attributed"),
    [(None, -signal.SIGPROF, True), ("2.13.0", -signal.SIGPROF, False), ("2.13.0", -signal.SIGSEGV, True)],
)
def test_no_time_out_under_host_code_is_run_again(
    store: Store, tmp_path: Path, host_code: str | None, exitcode: int, attributed: bool
) -> None:
    recording = begun(store)
    recording.add(opinfo("sort"), done=False)
    group = store.groups(recording.run.id)[-1].id
    marker = tmp_path / "marker"
    marker.write_bytes(MARK.pack(group, 5, ON_DEVICE))
    execution = IsolatedExecution(Settings(host_code=host_code), store, tmp_path)
    run_again: list[int] = []
    execution._attribute_crash = lambda pool, task, position: run_again.append(position)  # type: ignore[method-assign]
    task, expired = Task(group, opinfo("sort"), marker), ProcessExpired("gone", exitcode, PID)
    assert execution._record_exit(None, task, expired, 1)  # type: ignore[arg-type]
    assert run_again == [5] * attributed
