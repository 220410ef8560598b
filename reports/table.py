"""Tables and documents as plain data, and their Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tabulate import tabulate

Cell = str | int

SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


@dataclass(frozen=True)
class Table:
    """A table: its heading (marked where simulated), columns, rows, and a sentence of explanation or "".

    `code` names the columns that hold names of operators, cases or commands; `links` gives the addresses of cells.
    """

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    code: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)


def shortened(names: Sequence[str], limit: int = 4) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def markdown_section(table: Table) -> str:
    """The table in Markdown under its heading and its note."""
    rows = [
        [_cell(cell, column in table.code, table.links) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    numeric = [all(isinstance(row[i], int) for row in table.rows) for i in range(len(table.columns))]
    text = tabulate(
        rows,
        headers=[escaped(column) for column in table.columns],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if is_numeric else "left" for is_numeric in numeric],
    )
    parts = [f"## {escaped(table.heading)}", _with_code(table.note), unpadded(text)]
    return "\n\n".join(part for part in parts if part)


def unpadded(text: str) -> str:
    """The table without padding, so that a wider cell changes one line and not all."""
    lines = text.splitlines()
    lines[1] = re.sub(r"-{3,}", "---", lines[1])
    return "\n".join(re.sub(r" {2,}(?=\|)", " ", re.sub(r"(?<=\|) {2,}", " ", line)) for line in lines)


def _cell(cell: Cell, code: bool, links: Mapping[str, str]) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell in links:
        return f"[{escaped(cell)}]({links[cell]})"
    return f"`{cell}`".replace("|", "\\|") if code and cell else escaped(cell)


def escaped(text: str) -> str:
    """The text with everything that Markdown would take for markup escaped, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _with_code(note: str) -> str:
    """A note of this project in Markdown: text between backticks is code, and everything else is escaped."""
    parts = " ".join(note.split()).split("`")
    if len(parts) % 2 == 0:
        return escaped(note)
    return "".join(f"`{part}`" if number % 2 else SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


@dataclass(frozen=True)
class Document:
    """The content of a page: a title, Markdown paragraphs, tables, and more Markdown after them.

    Tables without rows are left out.
    """

    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table] = ()
    appendix: Sequence[str] = ()

    def markdown(self) -> str:
        """The page as Markdown text."""
        tables = [markdown_section(table) for table in self.tables if table.rows]
        return "\n\n".join([f"# {self.title}", *self.paragraphs, *tables, *self.appendix]) + "\n"
