"""mpsmith: find, track and replace what PyTorch's ``mps`` device lacks, sends to the CPU or gets wrong."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tracing.session import Trace

__all__ = ["__version__", "trace"]

__version__ = "0.1.0"


def trace(*, lines: bool = True) -> AbstractContextManager[Trace]:
    """Record which operators run on the CPU in a block, from which line, and where the host waits for the GPU.

    ``with mpsmith.trace() as t: ...``, then ``print(t)``, ``t.fallbacks``. Threads that the block starts are
    recorded too. A call of a backward has the line of its forward. `lines=False` only counts,
    which costs less. Falling back must be allowed (PYTORCH_ENABLE_MPS_FALLBACK=1 before torch is imported): the trace
    does not change what the program does. Without an mps device the simulated one is loaded.
    Raises MpsmithError if that fails.
    """
    from .tracing import session

    return session.trace(lines=lines)
