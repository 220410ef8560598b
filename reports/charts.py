"""Stacked bars as inline SVG. Colours come from the page's style sheet, by class, so that light and dark both work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..audit.findings.overload_verdict import count_verdicts
from ..audit.findings.results import FAULTS, AuditSummary
from ..audit.model.verdicts import OverloadVerdict
from .wording import LETTERS

WIDTH = 1000  # in the coordinates of the drawing; the page stretches it

# From left to right: support, the faults from the mildest to the worst, and failed references.
ORDER: tuple[OverloadVerdict, ...] = (
    OverloadVerdict.NATIVE,
    OverloadVerdict.COMPOSITE,
    *reversed(FAULTS),
    OverloadVerdict.REFERENCE_FAILED,
)


@dataclass(frozen=True)
class Segment:
    """One part of a bar. `style` is its CSS class, `letter` its letter in the legend."""

    name: str
    style: str
    letter: str
    count: int


@dataclass(frozen=True)
class Bar:
    """One line of a chart: a label, the bar as SVG, and the number at its end."""

    label: str
    svg: Markup
    total: int


@dataclass(frozen=True)
class Chart:
    """Bars under one heading, with their legend."""

    heading: str
    bars: tuple[Bar, ...]
    legend: tuple[Segment, ...]


def charts(summary: AuditSummary) -> list[Chart]:
    """The charts of a page: executed overloads, verdicts, and verdicts by dtype."""
    return [chart for chart in (_reach(summary), _verdicts(summary), _dtypes(summary)) if chart.bars]


def _reach(summary: AuditSummary) -> Chart:
    segments = [
        Segment("executed", "executed", "E", summary.executed_overloads),
        Segment("not executed", "unreachable", LETTERS[OverloadVerdict.UNREACHABLE], _not_executed(summary)),
        Segment("out of reach by rule", "ruled-out", "–", summary.ruled_out),
    ]
    total = len(summary.overloads)
    bars = (_bar("all overloads", segments, total),) if total else ()
    return Chart("What was executed", bars, tuple(segments))


def _not_executed(summary: AuditSummary) -> int:
    return summary.reachable - summary.executed_overloads


def _verdicts(summary: AuditSummary) -> Chart:
    overloads, operators = summary.overload_counts, summary.operator_counts
    lines = (("overloads", overloads), ("operators", operators))
    bars = [_bar(label, _segments(counts), _sum(counts)) for label, counts in lines if _sum(counts)]
    return Chart("Verdicts", tuple(bars), tuple(_segments(overloads)))


def _dtypes(summary: AuditSummary) -> Chart:
    bars = []
    for dtype in summary.dtypes:
        counts = count_verdicts(o.dtypes[dtype].verdict for o in summary.overloads if dtype in o.dtypes)
        if _sum(counts):
            bars.append(_bar(dtype, _segments(counts), _sum(counts)))
    return Chart("Overloads by dtype", tuple(bars), ())


def _segments(counts: Mapping[OverloadVerdict, int]) -> list[Segment]:
    """The segments of a bar in order, without those that were not executed."""
    return [Segment(v.value, style_of(v), LETTERS[v], counts[v]) for v in ORDER if v in counts]


def _sum(counts: Mapping[OverloadVerdict, int]) -> int:
    return sum(count for verdict, count in counts.items() if verdict is not OverloadVerdict.UNREACHABLE)


def style_of(verdict: OverloadVerdict) -> str:
    """The class in the style sheet that colours a verdict."""
    return verdict.value.replace(" ", "-")


def _bar(label: str, segments: Sequence[Segment], total: int) -> Bar:
    """A bar of full width, divided in proportion; every segment that is not empty stays visible."""
    present = [segment for segment in segments if segment.count]
    visible = 4.0
    spare = WIDTH - visible * len(present)
    parts, x = [], 0.0
    for segment in present:
        width = visible + spare * segment.count / total
        parts.append(
            Markup('<rect class="fill-{}" x="{:.1f}" width="{:.1f}" height="10"><title>{}</title></rect>').format(
                segment.style, x, width, f"{segment.name}: {segment.count:,} of {total:,}"
            )
        )
        x += width
    described = ", ".join(f"{segment.name} {segment.count:,}" for segment in present)
    svg = Markup('<svg viewBox="0 0 {} 10" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, f"{label}: {described}", Markup("").join(parts)
    )
    return Bar(label, svg, total)
