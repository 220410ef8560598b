"""What can go wrong with upstream's code."""

from __future__ import annotations

from ..errors import SimulatorError


class UpstreamError(SimulatorError):
    """A tree, or its code, cannot be used here; the message says why and what to do."""
