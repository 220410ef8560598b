"""Patches of torch and Python while a program is recorded; all but the last return a function that undoes the patch."""

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


def record_new_threads(recorded: Callable[[], AbstractContextManager[None]]) -> Undo:
    """Run threads that start from now on inside the context."""
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


def preserve_ctc_loss_dispatch() -> Undo:
    """Make ctc_loss dispatch as it does without a mode.

    Under any mode torch takes a different path for lengths in tensors, which fails if they are on the CPU. Without a
    mode it reads the lengths, as this patch does.
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


def watch_registrations(name: str, changed: Callable[[], None]) -> Undo:
    """Call `changed` when this method of torch.library.Library registers or removes a kernel."""
    function = getattr(torch.library.Library, name)

    @functools.wraps(function)
    def seen(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            changed()

    setattr(torch.library.Library, name, seen)
    return lambda: setattr(torch.library.Library, name, function)


def watch_waits(owner: Any, name: str, seen: Callable[[str, int, Any], None]) -> Undo:
    """Report each call of a torch function in which the host waits, unseen by a mode: its name, start and frame.

    torch disables all modes while it formats a tensor.
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


def exclude_from_dynamo(function: Any) -> None:
    """Keep Dynamo from compiling a function and what it calls: it runs between the compiled parts of a program."""
    dynamo = torch._C._dynamo.eval_frame
    try:
        skip = dynamo._FrameExecStrategy(dynamo._FrameAction.SKIP, dynamo._FrameAction.SKIP)  # with all that it calls
        dynamo.set_code_exec_strategy(function.__code__, skip)
    except AttributeError:  # older releases lack this, and compile some of it in vain
        return
