"""What stands in front of torch and Python while a program is recorded; each but the last returns what undoes it."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic_ns
from typing import Any

import torch

Undo = Callable[[], None]


def follow_threads(recorded: Callable[[], AbstractContextManager[None]]) -> Undo:
    """Let threads that are started from now on run inside such a context."""
    start = threading.Thread.start

    def start_recorded(thread: threading.Thread) -> None:
        run = thread.run

        def run_recorded() -> None:
            with recorded():
                run()

        thread.run = run_recorded  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_recorded  # type: ignore[method-assign, assignment]

    def undo() -> None:
        threading.Thread.start = start  # type: ignore[method-assign]

    return undo


def keep_the_way_of_ctc_loss() -> Undo:
    """Let ctc_loss call what it calls without a mode.

    Where any mode is there, torch takes another way for lengths in tensors, which fails where they are on the CPU.
    Without one it reads the lengths, as is done here.
    """
    function = torch.ctc_loss

    @functools.wraps(function)
    def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **kw: Any) -> Any:
        if isinstance(input_lengths, torch.Tensor) and not torch.compiler.is_compiling():
            input_lengths, target_lengths = input_lengths.tolist(), target_lengths.tolist()
        return function(log_probs, targets, input_lengths, target_lengths, *args, **kw)

    torch.ctc_loss = ctc_loss

    def undo() -> None:
        torch.ctc_loss = function

    return undo


def see_registrations(name: str, told: Callable[[], None]) -> Undo:
    """Call `told` when kernels come or go by this method of a library, as at `import mpsmith.kernels`."""
    function = getattr(torch.library.Library, name)

    @functools.wraps(function)
    def seen(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            told()

    setattr(torch.library.Library, name, seen)
    return lambda: setattr(torch.library.Library, name, function)


def see_waiting(owner: Any, name: str, seen: Callable[[str, int, Any], None]) -> Undo:
    """Tell of calls of a function of torch in which the host waits and that a mode cannot see: what, start, and frame.

    torch takes all modes away while it makes a tensor's text.
    """
    function = getattr(owner, name)
    prints = owner is torch._tensor_str

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        start = monotonic_ns()
        result = function(*args, **kwargs)
        if not prints or args[0].is_mps:
            seen("printing a tensor" if prints else "torch.mps.synchronize", start, sys._getframe(1))
        return result

    setattr(owner, name, recorded)
    return lambda: setattr(owner, name, function)


def keep_dynamo_out(function: Any) -> None:
    """Let Dynamo not compile a function, nor what it calls: it runs among what a compiled program leaves to aten."""
    dynamo = torch._C._dynamo.eval_frame
    try:
        skip = dynamo._FrameExecStrategy(dynamo._FrameAction.SKIP, dynamo._FrameAction.SKIP)  # with all that it calls
        dynamo.set_code_exec_strategy(function.__code__, skip)
    except AttributeError:  # an older torch has no such way: it compiles some of it, in vain
        return
