"""What is wrong with a file of evidence, or with a machine that cannot make one."""

from __future__ import annotations

from ...errors import MpsmithError


class EvidenceError(MpsmithError):
    """A file of evidence is refused, or none can be collected; the message says why in one line."""
