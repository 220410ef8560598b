"""Diagnostics by token; their lines are located all at once."""

from __future__ import annotations

from collections.abc import Iterator

from ..clang import Diagnostic
from ..clang.diagnostics import Severity
from .tokens import Location, Tokens


class Problems:
    """Collects errors and warnings while tokens are read."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._added: list[tuple[int, str, str, Severity]] = []
        self._located: list[Diagnostic] = []

    def add(self, token: int, rule: str, message: str, severity: Severity = "error") -> None:
        """Add a diagnostic at the token with that index."""
        self._added.append((token, rule, message, severity))

    def add_at(self, location: Location, rule: str, message: str, severity: Severity = "error") -> None:
        """Add a diagnostic at a known line."""
        self._located.append(Diagnostic(location.file, location.line, 0, severity, message, rule))

    def diagnostics(self) -> Iterator[Diagnostic]:
        """All diagnostics, with their lines in the Metal source."""
        locations = self._tokens.locate([token for token, *_ in self._added])
        for token, rule, message, severity in self._added:
            yield Diagnostic(locations[token].file, locations[token].line, 0, severity, message, rule)
        yield from self._located
