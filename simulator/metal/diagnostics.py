"""Translates clang's messages about rewritten source into names and positions of the Metal source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..clang.diagnostics import COMPILE, Diagnostic, messages

_ADDRESS_SPACE = re.compile(r"address space|__(?:local|global|private)")
_QUOTED = re.compile(r"'([A-Za-z_]\w*)'")
_OWN_WORDS = (
    # names of the rewriter, and names in the Metal source
    (re.compile(r"\bmsl_(memory_order\w*|atomic_\w+)\b"), r"\1"),
    (re.compile(r"\bmsl_cast\b"), "static_cast"),
    (re.compile(r"\b_Float16\b"), "half"),
    (re.compile(r"\b__bf16\b"), "bfloat"),
    (re.compile(r"\bunsigned (char|short|int|long)\b"), r"u\1"),
    (re.compile(r"\bvec<(\w+), (\d)>"), r"\1\2"),
    (re.compile(r"\bmetal::(?=\w+[234]\b)"), ""),
)


def parse_clang(stderr: str, sources: Mapping[str, list[str]]) -> Iterator[Diagnostic]:
    """Diagnostics from clang's messages; a note becomes part of the message that it explains.

    Args:
        stderr: clang's output, without carets.
        sources: the lines of the Metal files by name, to find the column that the rewriting moved.
    """
    for message in messages(stderr):
        text = _in_words_of_metal(message.text)
        diagnostic = Diagnostic(
            message.file,
            message.line,
            _column(sources.get(message.file), message.line, message.column, text),
            message.severity,
            text,
            message.flag or COMPILE,
        )
        for note in message.notes:
            diagnostic = _with_note(diagnostic, _in_words_of_metal(note.text), note.file, note.line, sources)
        yield diagnostic


def _in_words_of_metal(text: str) -> str:
    for pattern, replacement in _OWN_WORDS:
        text = pattern.sub(replacement, text)
    return text


def _with_note(current: Diagnostic, note: str, file: str, row: int, sources: Mapping[str, list[str]]) -> Diagnostic:
    """The diagnostic with a note's content: where a template was used, why an overload does not fit."""
    if current.file not in sources and file in sources:  # in our own headers: name the line that uses them
        return replace(current, file=file, line=row, column=0)
    if note.startswith("in instantiation") and file in sources:
        return replace(current, message=f"{current.message} ({note} at {file}:{row})")
    if note.startswith("expression evaluates"):
        return replace(current, message=f"{current.message} ({note})")
    if note.startswith("candidate function not viable") and _ADDRESS_SPACE.search(note) and "(" not in current.message:
        return replace(current, message=f"{current.message} ({note})")
    return current


def _column(lines: list[str] | None, row: int, column: int, message: str) -> int:
    """The column in the Metal source: that of the quoted name, or clang's."""
    if not lines or not 0 < row <= len(lines):
        return column
    line = lines[row - 1]
    for name in _QUOTED.findall(message):
        columns = [m.start() + 1 for m in re.finditer(rf"\b{re.escape(name)}\b", line)]
        if columns:
            return min(columns, key=lambda c: abs(c - column))
    return column if column <= len(line) else 0


def format_report(diagnostics: Iterable[Diagnostic], sources: Mapping[str, list[str]]) -> str:
    """Compiler-style text: the message, the source line, a caret."""
    parts: list[str] = []
    for diagnostic in diagnostics:
        parts.append(str(diagnostic))
        lines = sources.get(diagnostic.file)
        if lines and 0 < diagnostic.line <= len(lines):
            line = lines[diagnostic.line - 1].rstrip()
            parts.append(f"    {line}")
            if diagnostic.column:
                lead = re.sub(r"[^\t]", " ", line[: diagnostic.column - 1])
                parts.append(f"    {lead}^")
    return "\n".join(parts)
