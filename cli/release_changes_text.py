"""The wrong results of shipped kernels in several releases, as a table and as plain data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.findings.shipped.release_changes import ReleaseChange
    from ..audit.store.records import Run
    from ..audit.store.store import Store

LONGEST_CELL = 60


def changes_with_rules(runs: Sequence[tuple[Store, Run]]) -> tuple[ReleaseChange, ...]:
    """Changes of wrong results from the first of these runs to the last, with the rules that explain them."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explain
    from ..audit.findings.run_data import read_run
    from ..audit.findings.shipped.release_changes import release_changes

    read = (read_run(store, run, only_verdicts=True) for store, run in runs)
    return release_changes(runs, [explain(data, audited_surface(data.run))[1] for data in read])


def changes_table(changes: Sequence[ReleaseChange], releases: Sequence[str]) -> str:
    """A line for each wrong result, and how many are new, unchanged and fixed."""
    from tabulate import tabulate

    counted = Counter(change.change.value for change in changes)
    summed = ", ".join(f"{number} {word}" for word, number in counted.items()) or "none"
    head = f"wrong results (SIMULATED), {' -> '.join(releases)}: {summed}"
    rows = [
        (
            change.change.value,
            change.operator,
            change.dtype,
            _shortened(", ".join(change.kernels)),
            *(word for _, word in change.releases),
            change.cases,
            _shortened(change.message),
            _shortened(change.inputs),
            change.rule,
            change.example,
        )
        for change in changes
    ]
    headers = ("change", "operator", "dtype", "kernels", *releases, "cases", "values", "inputs", "explained by", "case")
    return f"{head}\n{tabulate(rows, headers=headers, disable_numparse=True)}" if rows else head


def changes_json(changes: Sequence[ReleaseChange]) -> list[dict[str, object]]:
    """The changes as plain data, nothing shortened."""
    return [
        {
            "change": change.change.value,
            "operator": change.operator,
            "dtype": change.dtype,
            "releases": dict(change.releases),
            "kernels": list(change.kernels),
            "cases": change.cases,
            "values": change.message,
            "inputs": change.inputs,
            "rule": change.rule,
            "case": change.example,
        }
        for change in changes
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
