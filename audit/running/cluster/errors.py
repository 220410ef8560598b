"""What goes wrong between machines."""

from __future__ import annotations

from ....errors import MpsmithError


class ClusterError(MpsmithError):
    """The cluster cannot be used, or is there no more; what had finished is in the store."""


class AnswerError(ClusterError):
    """A worker cannot do what it was asked for, or answers something else: it is left out, and others go on."""


class StoppedError(ClusterError):
    """The cluster failed an audit that had begun: it can be gone on with."""
