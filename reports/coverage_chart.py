"""Coverage over the releases as SVG for an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..audit.releases.coverage.history import ReleaseCounts

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 170, 40, 60

_STYLE = """
  .coverage { color: #333 }
  .coverage text { font: 13px system-ui, sans-serif; fill: currentColor }
  .coverage .axis { stroke: #999; fill: none }
  .coverage .grid { stroke: #ddd; fill: none }
  .coverage .line { fill: none; stroke-width: 2.5 }
  .coverage .ground { fill: #fff }
  @media (prefers-color-scheme: dark) {
    .coverage { color: #ddd }
    .coverage .axis { stroke: #777 }
    .coverage .grid { stroke: #444 }
    .coverage .ground { fill: #1b1b1b }
  }
"""


@dataclass(frozen=True)
class Line:
    """One line of the chart: its name, its colour and a value for each release."""

    name: str
    colour: str
    values: tuple[int, ...]


def history_lines(counts: Sequence[ReleaseCounts]) -> tuple[Line, ...]:
    """The lines of the history: operators with and without kernels."""
    return (
        Line("native operators", "#2a9d4b", tuple(count.native_operators for count in counts)),
        Line("missing operators", "#d1495b", tuple(count.missing_operators for count in counts)),
        Line("native overloads", "#7fc796", tuple(count.native for count in counts)),
        Line("missing overloads", "#e8a5ae", tuple(count.missing for count in counts)),
    )


def history_svg(counts: Sequence[ReleaseCounts]) -> str:
    """The history of coverage as SVG text without a namespace, which HTML does not need.

    Raises ValueError without a release.
    """
    if not counts:
        raise ValueError("a chart needs at least one release")
    lines = history_lines(counts)
    top = _round_up(max(max(line.values) for line in lines))
    releases = [count.release for count in counts]
    heading = f"MPS coverage of PyTorch {releases[0]} to {releases[-1]}"
    parts = [
        f'<svg class="coverage" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(heading)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="22" font-weight="bold">{escape(heading)}</text>',
        *_grid(top),
        *_release_names(releases),
    ]
    for line in lines:
        parts += _drawn(line, top)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_up(value: int) -> int:
    return max(100, -(-value // 100) * 100)


def _x(position: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (position / max(1, count - 1))


def _y(value: int, top: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _grid(top: int) -> list[str]:
    parts = []
    for value in range(0, top + 1, 200):
        y = _y(value, top)
        style = "axis" if value == 0 else "grid"
        parts.append(f'<path class="{style}" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    return parts


def _release_names(releases: Sequence[str]) -> list[str]:
    parts = []
    for position, release in enumerate(releases):
        x, y = _x(position, len(releases)), HEIGHT - BOTTOM + 18
        parts.append(f'<text transform="translate({x:.1f} {y}) rotate(40)">{escape(release)}</text>')
    return parts


def _drawn(line: Line, top: int) -> list[str]:
    count = len(line.values)
    points = " ".join(f"{_x(at, count):.1f},{_y(value, top):.1f}" for at, value in enumerate(line.values))
    last = line.values[-1]
    label_x, label_y = WIDTH - RIGHT + 8, _y(last, top) + 4
    return [
        f'<polyline class="line" stroke="{line.colour}" points="{points}"/>',
        f'<text x="{label_x}" y="{label_y:.1f}">{escape(line.name)} {last}</text>',
    ]
