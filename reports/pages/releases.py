"""The page of releases: how many overloads and operators each release has kernels for."""

from __future__ import annotations

from ..release_coverage import HISTORY_TITLES, history_cells
from ..table import Document, Table
from .page import PageInputs


def history_document(inputs: PageInputs) -> Document:
    """The figures of every release in the committed data, the newest first."""
    from ...audit.releases import data as release_data
    from ...audit.releases.coverage.history import history

    rows = tuple(history_cells(counts) for counts in reversed(history(release_data.load())))
    note = "An operator counts together with its in-place form; each overload counts by itself."
    return Document(
        "Coverage of every release since 1.12.1",
        ["Read from the macOS wheels: no Mac was involved."],
        [Table("Releases", HISTORY_TITLES, rows, note)],
    )
