"""mpsmith: find, track and replace what PyTorch's ``mps`` device lacks, sends to the CPU or gets wrong."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tracing.session import Trace

__all__ = ["__version__", "trace"]

__version__ = "0.1.0"


def trace(*, lines: bool = True, signposts: bool = False) -> AbstractContextManager[Trace]:
    """Record which operators run on the CPU in a block, from which line, and where the host waits for the GPU.

    ``with mpsmith.trace() as t: ...``, then ``print(t)``, ``t.fallbacks``, ``t.write_timeline("t.json")``. Threads that
    the block starts are seen too, and a backward is told by the line of its forward. `lines=False` counts alone, which
    costs less; with `signposts` torch writes signposts for Apple's Instruments meanwhile. Falling back must be allowed
    (PYTORCH_ENABLE_MPS_FALLBACK=1 before torch is imported): nothing here changes what the program does. Where there is
    no mps device, the simulated one is loaded.
    Raises MpsmithError where that cannot be done.
    """
    from .tracing import session

    return session.trace(lines=lines, signposts=signposts)
