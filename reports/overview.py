"""An overview of an audit: numbers, sentences and charts for the top of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from ..audit.findings.results import AuditSummary
from ..audit.model.verdicts import OverloadVerdict
from .charts import Chart, charts
from .html_templates import as_code
from .wording import completeness, key_figures, surface_note


@dataclass(frozen=True)
class AuditOverview:
    """The content at the top of a page.

    Attributes:
        simulated: whether the device was simulated.
        warning: that the audit is incomplete or executed nothing; "".
        surface_note: that the surface is of another torch than the one that ran; "".
        figures: large numbers, each with a label and a CSS class.
        sentences: the key figures.
        charts: of verdicts.
        views: the lists of the explorer: their key, name, and number of rows.
    """

    simulated: bool
    warning: Markup
    surface_note: str
    figures: tuple[tuple[str, str, str], ...]
    sentences: tuple[Markup, ...]
    charts: tuple[Chart, ...]
    views: tuple[tuple[str, str, int], ...]


def overview(summary: AuditSummary, links: Mapping[str, str]) -> AuditOverview:
    """The overview of an audit. `links`: the addresses of tables by heading, for sentences that refer to them."""
    run = summary.run
    whole = run.executed > 0 and run.complete
    return AuditOverview(
        simulated=run.simulated,
        warning=Markup("") if whole else as_code(completeness(run)),
        surface_note=surface_note(summary) or "",
        figures=tuple(_figures(summary)),
        sentences=tuple(linked(sentence, links) for sentence in key_figures(summary)),
        charts=tuple(charts(summary)),
        views=(
            ("operators", "Operators", len(summary.operators)),
            ("overloads", "Overloads", len(summary.overloads)),
            ("entries", "Test entries", len(summary.entries)),
        ),
    )


def linked(sentence: str, links: Mapping[str, str]) -> Markup:
    """The sentence, with "see Disagreements" linked to that table."""
    text = as_code(sentence)
    for heading, address in links.items():
        link = Markup('see <a href="{}">{}</a>').format(address, heading)
        text = Markup(text.replace(escape(f"see {heading}"), link))  # both are escaped
    return text


def _figures(summary: AuditSummary) -> list[tuple[str, str, str]]:
    counts = summary.overload_counts

    def of(*verdicts: OverloadVerdict) -> str:
        return f"{sum(counts.get(verdict, 0) for verdict in verdicts):,}"

    return [
        (f"{summary.supported:,}", "overloads supported", "native"),
        (of(OverloadVerdict.FALLBACK), "fall back", "fallback"),
        (of(OverloadVerdict.MISSING), "missing", "missing"),
        (of(OverloadVerdict.WRONG), "wrong", "wrong"),
        (of(OverloadVerdict.DTYPE_GAP), "dtype gaps", "dtype-gap"),
        (of(OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT), "crash or hang", "crash"),
        (f"{summary.reachable - summary.executed_overloads:,}", "not executed", "unreachable"),
        (f"{summary.run.executed:,}", "cases executed", ""),
    ]
