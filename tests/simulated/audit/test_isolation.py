"""A case that aborts, hangs or eats memory costs one case; a killed audit resumes to the undisturbed result."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.store.store import Store

HERE = Path(__file__).parent
# Only a hang of the audit itself ends these tests: on a busy machine the hostile cases take many minutes.
pytestmark = pytest.mark.timeout(3600)


def audit_command(store: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "mpsmith", "audit", "--device", "simulated", "--store", str(store), *options]


def replay_command(store: Path, number: int) -> list[str]:
    return [sys.executable, "-m", "mpsmith", "replay", str(number), "--store", str(store)]


def run(command: list[str], **keywords) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **keywords)


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("hostile") / "store.sqlite"
    ops = "aborts,aborts_with_a_word,segfaults,exits,hangs,hangs_with_gil,spins,eats_memory,raises,leaks"
    ops += ",aborts_on_cpu,sampler_*"
    options = ("--import", "hostile_cases", "--sources", "hostile,hostile to the cpu,unmakeable", "--ops", ops)
    result = run(audit_command(store, *options, "--timeout", "3", "--memory-limit", "3"))
    assert result.returncode == 0, result.stderr
    return store


def outcomes(store: Path, operator: str) -> dict[int, tuple[CaseVerdict, str]]:
    with Store.open(store) as opened:
        cases = opened.cases(opened.latest_run().id, "g.operator = ?", (operator,))
        return {case.position: (case.outcome.verdict, case.outcome.message) for case in cases}


@pytest.mark.parametrize(
    ("operator", "verdict", "text"),
    [
        ("aborts", CaseVerdict.CRASH, "SIGABRT"),
        ("segfaults", CaseVerdict.CRASH, "SIGSEGV"),
        ("exits", CaseVerdict.CRASH, "exit code 7"),
        ("hangs", CaseVerdict.TIMEOUT, "time-out"),
        ("hangs_with_gil", CaseVerdict.TIMEOUT, "time-out"),
        ("spins", CaseVerdict.TIMEOUT, "time-out"),
        ("eats_memory", CaseVerdict.CRASH, "out of memory"),
        ("raises", CaseVerdict.WRONG, "the kernel says no"),
        ("leaks", CaseVerdict.WRONG, "leaks memory"),
    ],
)
def test_a_bad_case_costs_one_case(hostile_store: Path, operator: str, verdict: CaseVerdict, text: str) -> None:
    by_position = outcomes(hostile_store, operator)
    assert sorted(by_position) == [0, 1, 2, 3, 4]
    assert by_position[2][0] is verdict
    assert text in by_position[2][1]
    assert {by_position[position][0] for position in (0, 1, 3, 4)} == {CaseVerdict.PASSED}


@pytest.mark.parametrize(
    ("operator", "message"), [("aborts", "SIGABRT"), ("aborts_with_a_word", "SIGABRT: the kernel at 0x… is gone")]
)
def test_a_crash_is_reported_with_its_last_output(hostile_store: Path, operator: str, message: str) -> None:
    """Not in what a case before it printed, and the same on every run."""
    assert outcomes(hostile_store, operator)[2] == (CaseVerdict.CRASH, message)


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        ("sampler_raises", "no samples today"),
        ("sampler_aborts", "SIGABRT"),
        ("aborts_on_cpu", "the CPU's run ends in SIGABRT"),
    ],
)
def test_without_a_reference_there_is_neither_a_pass_nor_a_crash(hostile_store: Path, operator: str, text: str) -> None:
    ((verdict, message),) = outcomes(hostile_store, operator).values()
    assert verdict is CaseVerdict.REFERENCE_FAILED
    assert text in message


def test_an_operator_without_samples_is_skipped(hostile_store: Path) -> None:
    by_position = outcomes(hostile_store, "sampler_skips")
    assert list(by_position.values()) == [(CaseVerdict.SKIPPED, "no samples: SkipTest: nothing for float32")]


def test_a_replay_repeats_a_verdict_that_takes_more_than_one_call(hostile_store: Path) -> None:
    with Store.open(hostile_store) as opened:
        (case,) = opened.cases(opened.latest_run().id, "g.operator = 'leaks' AND c.position = 2")
    result = run(replay_command(hostile_store, case.id))
    assert "now:      wrong" in result.stdout
    assert "leaks memory" in result.stdout


def test_the_replay_of_a_crash_survives_it(hostile_store: Path) -> None:
    with Store.open(hostile_store) as opened:
        (case,) = opened.cases(opened.latest_run().id, "g.operator = 'aborts' AND c.position = 2")
    result = run(replay_command(hostile_store, case.id))
    assert "now:      crash SIGABRT" in result.stdout
    assert "SIMULATED" in result.stdout


RESUMED_OPS = "softshrink,mode,heaviside,logit,median,nn.functional.pad,put,lerp,hypot,linalg.svd"


def contents(store: Path) -> list[tuple[object, ...]]:
    """What an audit found, without what differs from run to run: ids and times."""
    connection = sqlite3.connect(store)
    query = (
        "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, c.position, c.verdict, c.stage, c.message,"
        " c.fallbacks, c.compared, c.max_error, c.backward, c.inputs"
        " FROM cases c JOIN groups g ON g.id = c.group_id ORDER BY 1, 2, 3, 4, 5, 6"
    )
    return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    store = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    result = run(audit_command(store, "--ops", RESUMED_OPS))
    assert result.returncode == 0, result.stderr
    rows = contents(store)
    assert len(rows) > 1000
    return rows


@pytest.mark.rehearsal  # minutes, so the nightly run has it
def test_an_audit_killed_at_random_moments_resumes_to_the_same_result(
    tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    moments = random.Random(20261121)
    store = tmp_path / "store.sqlite"
    wanted = moments.sample(range(1, len(undisturbed) - 1), 8)
    options: tuple[str, ...] = ("--ops", RESUMED_OPS)
    for kill_at in sorted(wanted):
        before = contents(store) if store.exists() else []
        _run_until(store, options, kill_at)
        options = ("--resume",)
        after = contents(store)
        assert set(before) <= set(after), "a finished case was lost"
    result = run(audit_command(store, "--resume"))
    assert result.returncode == 0, result.stderr
    assert contents(store) == undisturbed


def _run_until(store: Path, options: tuple[str, ...], cases: int) -> None:
    """Start the audit and kill its parent, without any warning, once the store holds so many cases."""
    with subprocess.Popen(
        audit_command(store, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as parent:
        try:
            _wait_for(parent, store, cases)
        finally:
            parent.kill()


def _wait_for(audit: subprocess.Popen[Any], store: Path, cases: int) -> None:
    """Wait until the store has so many cases or the audit has ended, without taking a processor from the audit."""
    while audit.poll() is None and _count(store) < cases:
        with suppress(subprocess.TimeoutExpired):
            audit.wait(0.01)


def _count(store: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM cases").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    command = audit_command(store, "--sources", "opinfo", "--ops", RESUMED_OPS)
    # A shell starts background jobs with SIGINT ignored, and then it would stay ignored here.
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "start_new_session": True}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **listening) as parent:
        _wait_for(parent, store, 50)
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate(timeout=60)
    assert parent.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors


def test_two_audits_do_not_share_a_store(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    command = audit_command(store, "--sources", "opinfo", "--ops", RESUMED_OPS)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as first:
        _wait_for(first, store, 1)
        second = run(audit_command(store, "--ops", "add"))
        first.send_signal(signal.SIGINT)
    assert second.returncode == 2
    assert "another audit is writing" in second.stderr
