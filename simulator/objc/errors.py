"""What can go wrong between an Objective-C++ file and a loaded extension."""

from __future__ import annotations

from collections.abc import Sequence

from ..clang import Diagnostic
from ..errors import SimulatorError


class ExtensionError(SimulatorError):
    """An extension cannot be built or loaded here; the message says why and what to do."""


class ExtensionBuildError(ExtensionError):
    """The source does not compile or link; `diagnostics` are the compiler's messages, with file and line."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class ExtensionLoadError(ExtensionError):
    """A built extension cannot be loaded into this process."""
