"""Diagnostics by token, located all at once when there are any."""

from __future__ import annotations

from collections.abc import Iterator

from ..clang import Diagnostic
from ..clang.diagnostics import Severity
from .tokens import Tokens


class Problems:
    """What is found wrong while tokens are read."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._noted: list[tuple[int, str, str, Severity]] = []

    def add(self, token: int, rule: str, message: str, severity: Severity = "error") -> None:
        """Notes what is wrong at the token with that index."""
        self._noted.append((token, rule, message, severity))

    def found(self) -> Iterator[Diagnostic]:
        """All that was noted, with places in the Metal source."""
        places = self._tokens.locate([token for token, *_ in self._noted])
        for token, rule, message, severity in self._noted:
            yield Diagnostic(places[token].file, places[token].line, 0, severity, message, rule)
