"""A limit in processor time, which the load of the machine does not use up, and a generous one for what sleeps."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from mpsmith.audit.model import time_limit

# On a busy machine the limit of the wall clock may be over first.
PROCESSOR_TIME_ALONE = "signal.setitimer(signal.ITIMER_REAL, 0)"


def ended_by(code: str, *, before: str = "") -> int:
    """The exit code of a process with a tiny limit that does this."""
    program = f"""
import signal, threading, time
from mpsmith.audit.model import time_limit
{before}
time_limit.prepare()
time_limit.start(0.1)
{code}
"""
    return subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode


@pytest.mark.parametrize(
    ("code", "alarm"),
    [
        (f"{PROCESSOR_TIME_ALONE}\nwhile True: pass", signal.SIGPROF),
        (
            f"{PROCESSOR_TIME_ALONE}\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\n"
            "time.sleep(1000)",
            signal.SIGPROF,
        ),
        ("time.sleep(1000)", signal.SIGALRM),
        ("import ctypes; ctypes.PyDLL(None).pause()", signal.SIGALRM),
    ],
    ids=["computes", "computes in a thread", "sleeps", "sleeps with the GIL"],
)
def test_an_endless_call_is_ended(code: str, alarm: signal.Signals) -> None:
    exitcode = ended_by(code)
    assert exitcode == -alarm
    assert time_limit.exceeded(exitcode)


def test_a_call_that_ignores_the_signals_is_ended() -> None:
    ignored = "signal.signal(signal.SIGPROF, signal.SIG_IGN); signal.signal(signal.SIGALRM, signal.SIG_IGN)"
    assert ended_by(f"{PROCESSOR_TIME_ALONE}\nwhile True: pass", before=ignored) == -signal.SIGPROF


def test_a_process_within_the_limit_survives() -> None:
    assert ended_by("time_limit.stop(); signal.sigtimedwait([signal.SIGUSR1], 1)") == 0


def test_processor_time_is_limited_and_the_wall_clock_generously() -> None:
    time_limit.start(1000.0)
    processor, wall = (signal.getitimer(timer)[0] for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL))
    time_limit.stop()
    assert 900 < processor <= 1001
    assert 4500 < wall <= 5001
    assert signal.getitimer(signal.ITIMER_PROF)[0] == signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_suspended_limit_continues_with_the_remaining_time() -> None:
    time_limit.start(1000.0)
    with time_limit.suspended():
        assert signal.getitimer(signal.ITIMER_PROF)[0] == signal.getitimer(signal.ITIMER_REAL)[0] == 0
    left = signal.getitimer(signal.ITIMER_PROF)[0]
    time_limit.stop()
    assert 900 < left <= 1001
    with time_limit.suspended():
        pass
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0  # no limit before, none after


def test_a_suspended_limit_does_not_end_the_process() -> None:
    waiting = "signal.sigtimedwait([signal.SIGUSR1], 1)"
    assert ended_by(f"with time_limit.suspended(): {waiting}\ntime_limit.stop()") == 0


@pytest.mark.parametrize("exitcode", [0, 1, -signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, signal.SIGALRM])
def test_other_exit_codes_are_not_a_time_out(exitcode: int) -> None:
    assert not time_limit.exceeded(exitcode)
