"""Checks whether the autograd engine has started, and ends its threads. The engine counts devices only once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

# The exit status of a failed child of _backward_works_in_a_fork, and its time limit.
_BACKWARD_FAILED = 3
_FORK_SECONDS = 20
_THREAD_END_SECONDS = 5


def has_started(register_device: Callable[[], None]) -> bool:
    """Whether a backward has run in this process. Then the engine aborts every backward on a device added later.

    `register_device` registers the device; it is called only in a fork of this process.
    """
    return _may_have_started() and not _backward_works_in_a_fork(register_device)


def end_threads() -> None:
    """Wait until the engine's device threads have ended, at the end of the process.

    A thread that needs the GIL while Python shuts down, to free the last graph or its own Python state, aborts
    the process.
    """
    import torch

    torch.ops.mpsmith_simulator.stop_autograd_threads()
    deadline = time.monotonic() + _THREAD_END_SECONDS
    while _has_thread() and time.monotonic() < deadline:
        time.sleep(0.001)


def _has_thread() -> bool:
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            if (task / "comm").read_text().startswith("pt_autograd"):
                return True
    return False


def _may_have_started() -> bool:
    """False only if this is the only thread and it has recorded nothing for autograd."""
    import torch

    return torch._C._autograd._get_sequence_nr() > 0 or threading.active_count() > 1


def _backward_works_in_a_fork(register_device: Callable[[], None]) -> bool:
    """Try the device in a fork of this process, because the engine does not report whether it has started.

    Trying it here would leave a half-loaded device on failure. On success it would start the device's autograd thread,
    after which no child process can run a backward.
    """
    import torch

    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _BACKWARD_FAILED
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_FORK_SECONDS)
        register_device()
        with contextlib.suppress(RuntimeError):
            torch.ones((), device="mps", requires_grad=True).backward()  # type: ignore[no-untyped-call]
            os._exit(0)
        os._exit(_BACKWARD_FAILED)
    finally:
        os._exit(0)
