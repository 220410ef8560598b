"""What can go wrong with the compiler itself."""

from __future__ import annotations

from ...errors import MpsmithError


class CompilerMissingError(MpsmithError, RuntimeError):
    """No compiler is installed, or it does not start here."""


class CompilerLimitError(MpsmithError, RuntimeError):
    """The compiler took more time than it was given."""


class InternalCompilerError(MpsmithError, RuntimeError):
    """The compiler or the runtime of the simulator failed: a fault of mpsmith, not of the source."""
