"""Errors in scaffolding and checking, each with a line that says what to do next."""

from __future__ import annotations

from ..errors import MpsmithError


class ScaffoldError(MpsmithError):
    """The operator cannot be scaffolded as requested, or existing files would be overwritten."""


class NothingToPatchError(ScaffoldError):
    """The release has kernels on mps for everything that a family serves."""


class ToolchainError(MpsmithError):
    """The compiler, headers or libraries for macOS are missing or cannot be fetched."""
