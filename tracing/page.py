"""The recording as one self-contained HTML page: the tables, and a drawing of the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from ..reports.html_templates import HtmlPage, as_code
from .recording import Event, Recording
from .summary import Summary
from .text import closing, heading, share, shown_site, size, where
from .timeline import LANE, LANES

# How a heading of a simulated run begins.
SIMULATED = "SIMULATED "
# The most calls in the drawings of a page, which keeps it under two megabytes.
DRAWN = 4000
WIDTH = 1200.0
LANE_HEIGHT = 22


@dataclass(frozen=True)
class TimeBar:
    """One call in the drawing."""

    left: float
    width: float
    top: int
    kind: str
    title: str


def write(path: Path, summary: Summary, after: Summary | None = None) -> None:
    """Write the page; `after` is the same program with `import mpsmith.kernels`. Raises OSError."""
    path.write_text(render(summary, after), encoding="utf-8")


def render(summary: Summary, after: Summary | None = None) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mpsmith.tracing"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    runs = [("This program", summary)] + ([("With mpsmith.kernels", after)] if after else [])
    content = environment.get_template("trace.html.j2").render(
        runs=[(title, run, bars(run.recording, DRAWN // len(runs))) for title, run in runs],
        lanes=LANES,
        lane_height=LANE_HEIGHT,
        width=WIDTH,
        heading=lambda run: [as_code(line) for line in heading(run) if not line.startswith(SIMULATED)],
        closing=lambda run: map(as_code, closing(run)),
        size=size,
        share=share,
        where=where,
    )
    notes = (line.removeprefix(SIMULATED) for line in heading(summary) if line.startswith(SIMULATED))
    page = HtmlPage(
        file="",
        title="What ran where",
        subtitle="Recorded by `mpsmith trace`; `--json` and `--perfetto FILE` have all of it.",
        simulated_note=next(notes, ""),
        wide=True,
        inline=True,
    )
    return page.render("content.html.j2", content=Markup(content))


def bars(recording: Recording, most: int = DRAWN) -> list[TimeBar]:
    """The first calls, left to right; every call is at least half a unit wide."""
    events = sorted(recording.events, key=lambda event: event.start)[:most]
    if not events:
        return []
    origin = events[0].start
    scale = WIDTH / max(1, max(event.start + event.duration for event in events) - origin)
    return [_bar(recording, event, origin, scale) for event in events]


def _bar(recording: Recording, event: Event, origin: int, scale: float) -> TimeBar:
    row = recording.rows[event.row]
    lane = LANE[row.kind]
    parts: Sequence[str] = (
        f"{row.overload}, {event.duration / 1000:.1f} µs",
        shown_site(row.site),
        row.site.module,
        " ".join(map(str, row.operands or ())),
    )
    return TimeBar(
        left=round((event.start - origin) * scale, 2),
        width=round(max(event.duration * scale, 0.5), 2),
        top=lane * LANE_HEIGHT,
        kind=row.kind.name,
        title="\n".join(part for part in parts if part),
    )
