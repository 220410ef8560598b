"""The tables of `mpsmith coverage` for the terminal, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ..audit.releases.coverage import OverloadCoverage, ReleaseCoverage
from ..audit.releases.coverage.history import ReleaseCounts
from ..audit.releases.coverage.table import OperatorRow
from ..audit.releases.surface.native_functions import functional_name
from ..audit.releases.surface.overloads import Dispatch
from ..reports.release_coverage import HISTORY_TITLES, OPERATOR_TITLES, history_cells, operator_cells


def render(headers: Sequence[str], rows: Sequence[Sequence[object]], form: str) -> str:
    """A table as terminal, csv or markdown, with a newline at its end."""
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(headers)
        writer.writerows(rows)
        return buffer.getvalue()
    style = "github" if form == "markdown" else "simple"
    return tabulate(rows, headers=headers, tablefmt=style, disable_numparse=form == "terminal") + "\n"


def summary(release: ReleaseCoverage) -> str:
    """A summary of a release: how its overloads dispatch, what the binary adds, what upstream expects to fail."""
    counted = Counter(overload.dispatch for overload in release.overloads)
    rows = [
        (dispatch.value, counted[dispatch], len(_operators(release.overloads, dispatch)))
        for dispatch in Dispatch
        if counted[dispatch]
    ]
    parts = [
        f"torch {release.release}, from {release.source}\n",
        render(("dispatch on mps", "overloads", "operators"), rows, "terminal"),
        _binary_text(release),
        _failure_text(release),
    ]
    return "\n".join(part for part in parts if part)


def _operators(overloads: Iterable[OverloadCoverage], dispatch: Dispatch) -> set[str]:
    return {functional_name(overload.name) for overload in overloads if overload.dispatch is dispatch}


def _binary_text(release: ReleaseCoverage) -> str:
    facts = release.facts
    if facts is None:
        return "the binary was not read: what C++ registers by hand is taken from the release data\n"
    registered = ", ".join(f"{count} {key}" for key, count in facts.registered.items() if count)
    metal = ", ".join(f"{count} in {section}" for section, count in facts.metal_functions.items()) or "none embedded"
    lines = [
        f"the binary registers {registered}; Metal functions: {metal}; "
        f"built for macOS {facts.minimum_macos} with SDK {facts.sdk}"
    ]
    for overload in release.overloads:
        if overload.rule:
            lines.append(f"  {overload.name}: {overload.rule} ({overload.explanation})")
    lines += [f"  {name}: UNEXPLAINED difference between yaml and binary" for name in facts.unexplained]
    return "\n".join(lines) + "\n"


def _failure_text(release: ReleaseCoverage) -> str:
    if not release.failures:
        return ""
    stages = Counter(key.stage for key in release.failures)
    counted = ", ".join(f"{count} {stage}" for stage, count in sorted(stages.items()))
    return f"upstream expects failures of tests: {counted}\n"


def overload_table(overloads: Sequence[OverloadCoverage], form: str) -> str:
    """A row per overload, with both kinds of evidence."""
    rows = [
        (
            overload.name,
            overload.dispatch.value,
            overload.declared.value,
            overload.registered,
            overload.rule or "",
            overload.unreachable or "",
        )
        for overload in overloads
    ]
    headers = ("overload", "dispatch on mps", "yaml", "binary", "explained by", "unreachable by")
    return render(headers, rows, form)


def operator_table(rows: Sequence[OperatorRow], form: str) -> str:
    """A row per operator. A verdict of the simulated device says so."""
    return render(OPERATOR_TITLES, [operator_cells(row) for row in rows], form)


def history_table(counts: Sequence[ReleaseCounts], form: str) -> str:
    """A row per release."""
    return render(HISTORY_TITLES, [history_cells(count) for count in counts], form)
