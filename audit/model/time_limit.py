"""A limit on what this process does next: in processor time, so that a busy machine changes no verdict.

Both limits are alarms of the kernel whose default action ends the process, because code that hangs in C never returns
to Python. The processor time is that of all threads of the process, in user mode and in the kernel. A process that
sleeps (a deadlock, a GPU that never answers) uses none, so there is also a generous limit on wall time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

# How much longer than its processor time something may take: on a busy machine it waits for its turn, too.
WALL_FACTOR = 5.0

_ALARMS = (signal.SIGPROF, signal.SIGALRM)


def prepare() -> None:
    """Let the alarms end this process, even if it inherited other handlers."""
    for alarm in _ALARMS:
        signal.signal(alarm, signal.SIG_DFL)


def start(seconds: float) -> None:
    """From now on this process may use this many seconds of processor time; replaces an earlier limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * WALL_FACTOR)


def stop() -> None:
    """Remove the limit."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def suspended() -> Iterator[None]:
    """A context whose time counts against no limit; afterwards the time that was left is available again."""
    left = [(timer, signal.setitimer(timer, 0)[0]) for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL)]
    try:
        yield
    finally:
        for timer, seconds in left:
            if seconds:
                signal.setitimer(timer, seconds)


def exceeded(exitcode: int) -> bool:
    """Whether a process with this exit code (negative for a signal) was ended by its limit."""
    return -exitcode in _ALARMS
