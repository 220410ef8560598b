"""The error of this room."""

from ..errors import MpsmithError


class SimulatorError(MpsmithError):
    """The simulated device cannot be built or loaded here; the message says why and what to do."""
