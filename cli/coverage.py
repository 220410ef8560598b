"""`mpsmith coverage`: what a macOS release of torch has kernels for, read from wheels without a Mac."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Operators, Release, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.releases.coverage import OverloadCoverage, ReleaseCoverage


class CoverageFormat(str, Enum):
    """How the coverage is printed."""

    TERMINAL = "terminal"
    CSV = "csv"
    MARKDOWN = "markdown"


WheelOrUrl = Annotated[
    str | None,
    typer.Option(
        "--wheel", metavar="PATH|URL", help="A wheel for macOS, a folder with an unpacked one, or a wheel on a server."
    ),
]


def coverage(
    torch: Release = None,
    wheel: WheelOrUrl = None,
    ops: Operators = None,
    missing: Annotated[bool, typer.Option("--missing", help="Only overloads without a kernel.")] = False,
    by_operator: Annotated[
        bool,
        typer.Option(
            "--operators",
            help="A row per operator: native since when, kernel dtypes, expected failures, audit, registry, kernel.",
        ),
    ] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="With --operators: only where upstream's lists and kernels disagree.")
    ] = False,
    history: Annotated[bool, typer.Option("--history", help="A row per release, with the oldest first.")] = False,
    form: Annotated[
        CoverageFormat, typer.Option("--format", help="csv and markdown are for the tables.")
    ] = CoverageFormat.TERMINAL,
    as_json: AsJson = False,
) -> None:
    """Show for every ATen overload whether a release has an mps kernel, by its declarations and its binary."""
    if history:
        _show_history(form, as_json)
        return
    release = _coverage_of(torch, wheel)
    patterns = values_of(ops, "--ops")
    if by_operator or drift:
        _show_operators(release, patterns, form, only_drift=drift, as_json=as_json)
    else:
        _show_overloads(release, patterns, form, only_missing=missing, as_json=as_json)


def _coverage_of(torch: str | None, wheel: str | None) -> ReleaseCoverage:
    from ..audit.releases.coverage.sources import named_coverage

    if wheel is not None and "://" in wheel:
        return named_coverage(torch=torch, url=wheel)
    return named_coverage(torch=torch, wheel=None if wheel is None else Path(wheel))


def _show_overloads(
    release: ReleaseCoverage, patterns: Sequence[str], form: CoverageFormat, *, only_missing: bool, as_json: bool
) -> None:
    from ..audit.releases.coverage import lacking
    from .coverage_text import overload_table, summary

    overloads = _selected(release.overloads, patterns)
    if only_missing:
        overloads = lacking(overloads)
    if as_json:
        print_json(_release_json(release, overloads))
    elif patterns or only_missing or form is not CoverageFormat.TERMINAL:
        typer.echo(overload_table(overloads, form.value), nl=False)
    else:
        typer.echo(summary(release), nl=False)


def _show_operators(
    release: ReleaseCoverage, patterns: Sequence[str], form: CoverageFormat, *, only_drift: bool, as_json: bool
) -> None:
    from dataclasses import asdict

    from ..audit.releases import data as release_data
    from ..audit.releases.coverage.table import operator_rows
    from ..audit.releases.surface.native_functions import functional_name
    from ..registry.files import load
    from .coverage_text import operator_table

    names = {functional_name(overload.name) for overload in _selected(release.overloads, patterns)}
    rows = operator_rows(release, release_data.load(), load(None), None)
    rows = [row for row in rows if row.operator in names and (row.drift or not only_drift)]
    if as_json:
        operators = [asdict(row) for row in rows]
        print_json({"release": release.release, "source": release.source, "operators": operators})
    else:
        typer.echo(operator_table(rows, form.value), nl=False)


def _show_history(form: CoverageFormat, as_json: bool) -> None:
    from dataclasses import asdict

    from ..audit.releases import data as release_data
    from ..audit.releases.coverage.history import history
    from .coverage_text import history_table

    counts = history(release_data.load())
    if as_json:
        print_json([asdict(count) for count in counts])
    else:
        typer.echo(history_table(counts, form.value), nl=False)


def _selected(overloads: Sequence[OverloadCoverage], patterns: Sequence[str]) -> list[OverloadCoverage]:
    from ..audit.releases.surface.name_patterns import select_names

    names = set(select_names([overload.name for overload in overloads], patterns))
    return [overload for overload in overloads if overload.name in names]


def _release_json(release: ReleaseCoverage, overloads: Sequence[OverloadCoverage]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "release": release.release,
        "source": release.source,
        "facts": asdict(release.facts) if release.facts else None,
        "overloads": [asdict(overload) for overload in overloads],
        "expected_failures": [{**asdict(key), "dtypes": dtypes} for key, dtypes in sorted(release.failures.items())],
    }
