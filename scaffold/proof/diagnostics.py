"""Helpers for the checker's findings."""

from __future__ import annotations

from collections.abc import Iterable

from ...simulator.clang import Diagnostic


def has_errors(findings: Iterable[Diagnostic]) -> bool:
    """Whether any finding is an error."""
    return any(finding.severity == "error" for finding in findings)


def line_of(text: str, needle: str) -> int:
    """The line of the first `needle` in the text, from 1; 0 if it is not there."""
    position = text.find(needle)
    return text.count("\n", 0, position) + 1 if position >= 0 else 0
