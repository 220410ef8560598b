"""The texts of `mpsmith coverage`: tables for the terminal, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from tabulate import tabulate

from ..audit.coverage import OverloadCoverage, ReleaseCoverage
from ..audit.coverage_history import CoverageDiff, DispatchChange, ReleaseCounts
from ..audit.coverage_table import OperatorRow
from ..audit.native_functions import functional_name
from ..audit.overloads import Dispatch

Format = Literal["terminal", "csv", "markdown"]


def render(headers: Sequence[str], rows: Sequence[Sequence[object]], form: Format) -> str:
    """A table in one of the three forms, with a newline at its end."""
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(headers)
        writer.writerows(rows)
        return buffer.getvalue()
    style = "github" if form == "markdown" else "simple"
    return tabulate(rows, headers=headers, tablefmt=style, disable_numparse=form == "terminal") + "\n"


def summary(found: ReleaseCoverage) -> str:
    """A release at a glance: how its overloads dispatch, what the binary adds, what upstream expects to fail."""
    counted = Counter(overload.dispatch for overload in found.overloads)
    rows = [
        (dispatch.value, counted[dispatch], len(_operators(found.overloads, dispatch)))
        for dispatch in Dispatch
        if counted[dispatch]
    ]
    parts = [
        f"torch {found.release}, from {found.source}\n",
        render(("dispatch on mps", "overloads", "operators"), rows, "terminal"),
        _binary_text(found),
        _failure_text(found),
    ]
    return "\n".join(part for part in parts if part)


def _operators(overloads: Iterable[OverloadCoverage], dispatch: Dispatch) -> set[str]:
    return {functional_name(overload.name) for overload in overloads if overload.dispatch is dispatch}


def _binary_text(found: ReleaseCoverage) -> str:
    facts = found.facts
    if facts is None:
        return "the binary was not read: what C++ registers by hand is taken from the release data\n"
    registered = ", ".join(f"{count} {key}" for key, count in facts.registered.items() if count)
    metal = ", ".join(f"{count} in {section}" for section, count in facts.metal_functions.items()) or "none embedded"
    lines = [
        f"the binary registers {registered}; Metal functions: {metal}; "
        f"built for macOS {facts.minimum_macos} with SDK {facts.sdk}"
    ]
    for overload in found.overloads:
        if overload.rule:
            lines.append(f"  {overload.name}: {overload.rule} ({overload.explanation})")
    lines += [f"  {name}: UNEXPLAINED difference between yaml and binary" for name in facts.unexplained]
    return "\n".join(lines) + "\n"


def _failure_text(found: ReleaseCoverage) -> str:
    if not found.failures:
        return ""
    stages = Counter(key.stage for key in found.failures)
    counted = ", ".join(f"{count} {stage}" for stage, count in sorted(stages.items()))
    return f"upstream expects failures of tests: {counted}\n"


def overload_table(overloads: Sequence[OverloadCoverage]) -> str:
    """A line for each overload, with both kinds of evidence."""
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
    headers = ("overload", "dispatch on mps", "yaml", "binary", "explained by", "out of reach by")
    return render(headers, rows, "terminal")


def operator_table(rows: Sequence[OperatorRow], form: Format) -> str:
    """The joined table. Verdicts that no Mac has shown say so."""
    headers = (
        "operator",
        "mps",
        "native overloads",
        "native since",
        "Metal kernels",
        "upstream expects to fail",
        "drift",
        "audit",
        "status",
        "replacement",
    )
    lines = [
        (
            row.operator,
            row.standing.value,
            f"{row.native_overloads} of {row.kernel_overloads}" if row.kernel_overloads else "",
            row.native_since or "",
            " ".join(_short(row.metal_dtypes)),
            _expected(row.expected_failures),
            "; ".join(drift.value for drift in row.drift),
            _verdict(row),
            row.status or "",
            row.replacement or "",
        )
        for row in rows
    ]
    return render(headers, lines, form)


_SHORT = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "bool": "b",
}


def _short(dtypes: Iterable[str]) -> list[str]:
    return [_SHORT.get(dtype, dtype) for dtype in dtypes]


def _expected(failures: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{stage}: {' '.join(_short(dtypes))}" for stage, dtypes in failures.items())


def _verdict(row: OperatorRow) -> str:
    if row.verdict is None:
        return ""
    return f"{row.verdict} ({row.measured_on})" if row.measured_on != "mps" else row.verdict


def diff_text(changes: CoverageDiff) -> str:
    """What changed between two releases, each list under its heading."""
    parts = [f"torch {changes.before} to {changes.after}"]
    for heading, found in (
        ("got a kernel", changes.gained),
        ("lost their kernel", changes.lost),
        ("new overloads", changes.added),
        ("removed overloads", changes.removed),
        ("dispatch differently without a kernel", changes.changed),
    ):
        if found:
            parts.append(f"{len(found)} {heading}:\n" + "\n".join(f"  {_change(change)}" for change in found))
    for heading, dtypes in (("gained", changes.metal_gained), ("lost", changes.metal_lost)):
        if dtypes:
            lines = [f"  {operator}: {' '.join(names)}" for operator, names in dtypes.items()]
            parts.append(f"{len(dtypes)} operators {heading} Metal kernels for dtypes:\n" + "\n".join(lines))
    if len(parts) == 1:
        parts.append("nothing changed")
    return "\n\n".join(parts) + "\n"


def _change(change: DispatchChange) -> str:
    before = change.before.value if change.before else "absent"
    after = change.after.value if change.after else "absent"
    return f"{change.name}: {before} -> {after}"


def history_table(counts: Sequence[ReleaseCounts], form: Format) -> str:
    """A line for each release."""
    headers = (
        "release",
        "native",
        "operators",
        "missing",
        "operators missing",
        "composite",
        "missing everywhere",
        "by hand",
        "fall back",
        "SparseMPS",
        "Metal functions",
        "gained",
        "lost",
    )
    rows = [
        (
            count.release,
            count.native,
            count.native_operators,
            count.missing,
            count.missing_operators,
            count.composite,
            count.missing_everywhere,
            count.by_hand,
            count.falls_back,
            count.sparse,
            count.metal_functions,
            len(count.gained),
            len(count.lost),
        )
        for count in counts
    ]
    return render(headers, rows, form)
