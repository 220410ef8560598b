"""The page of what torch.compile's Metal gets wrong, docs/compiled_findings.md: the programs and what they showed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..audit.compiled.defects.defect import Defect
    from ..audit.compiled.defects.measurement_file import KeptRelease, KeptShown

# So many lines of a kernel are shown.
MOST_LINES = 40
RIGHT = ("metal", "metal + aten", "aten", "no kernel")

_HEAD = """\
# What torch.compile's Metal for mps gets wrong

Under `torch.compile`, Inductor writes Metal for mps. mpsmith runs that Metal on Linux, on the **simulated** mps device,
and compares with the CPU. These are the defects of upstream's generated code that it found, each with a program that
needs nothing but torch. None was confirmed on a Mac by us; what others saw on Macs stands beside it.

```
mpsmith compiled defects                       # run them all with the installed torch's code generator
mpsmith compiled defects --codegen 2.15.0      # with another release's
mpsmith compiled defects --script U2           # the program, for a Mac
```

`mpsmith compiled defects --codegen {releases} --record` measured this page and wrote it.

How sure it is that a Mac shows it too:

| certainty | what that means |
|---|---|
| logic of the generated source | the source says something else than the program, or none is generated |
| undefined behaviour | the source relies on what Metal leaves open: a chip may show it, and the next one not |
| Apple's library | it turns on what Apple's compiler accepts, or its library returns: needs a Mac first |
"""

_RELEASES = """\
## Over the releases

The code generator of another release (`torch/_inductor/codegen/mps.py` and the headers of `c10/metal`, out of its macOS
wheel) laid over the Inductor of torch {installed}: an *overlay*, and no release as anybody has it. What the rest of
Inductor decides (decompositions, lowerings, the order of loops) is torch {installed}'s in every column, so a defect
that a release mended there still shows. A dash: right.
"""


def compiled_findings_page(defects: Sequence[Defect], releases: Sequence[KeptRelease]) -> str:
    """The page in Markdown.

    Args:
        defects: the defects, the surest first.
        releases: what was measured, the installed release among them.
    """
    installed = next(each for each in releases if not each.overlay)
    lines = [_HEAD.format(releases=",".join(each.release for each in releases if each.overlay))]
    lines += ["| | defect | shows as | certainty | blame | public |", "|---|---|---|---|---|---|"]
    lines += [_row(defect, installed.shown[defect.number]) for defect in defects]
    lines += ["", _RELEASES.format(installed=installed.release)]
    lines += _over_releases(defects, releases)
    for defect in defects:
        lines += ["", *_section(defect, installed)]
    return "\n".join(lines) + "\n"


def _row(defect: Defect, shown: KeptShown) -> str:
    public = ", ".join(f"[#{report.link.rpartition('/')[2]}]({report.link})" for report in defect.reports)
    cells = (
        defect.number,
        defect.title,
        shown.verdict,
        defect.certainty.value,
        shown.blame or "–",
        public or "none found",
    )
    return f"| {' | '.join(cells)} |"


def _over_releases(defects: Sequence[Defect], releases: Sequence[KeptRelease]) -> Iterator[str]:
    able = [each for each in releases if not each.cannot]
    yield f"| | {' | '.join(each.release if each.overlay else f'**{each.release}**' for each in able)} |"
    yield "|---" * (len(able) + 1) + "|"
    for defect in defects:
        cells = [_cell(each.shown.get(defect.number)) for each in able]
        yield f"| {defect.number} | {' | '.join(cells)} |"
    changes = list(_changes(able))
    if changes:
        yield ""
        yield from changes
    for each in releases:
        if each.cannot:
            yield f"\ntorch {each.release}: {each.cannot}"


def _cell(shown: KeptShown | None) -> str:
    if shown is None:
        return ""
    return "–" if shown.verdict in RIGHT else shown.verdict


def _changes(releases: Sequence[KeptRelease]) -> Iterator[str]:
    """What each release mended and broke, against the one before it."""
    for before, after in pairwise(releases):
        mended = [n for n in after.shown if _bad(before.shown, n) and not _bad(after.shown, n)]
        broken = [n for n in after.shown if not _bad(before.shown, n) and _bad(after.shown, n)]
        if mended or broken:
            parts = [f"{word} {', '.join(which)}" for word, which in (("mended", mended), ("broke", broken)) if which]
            yield f"- {after.release} {' and '.join(parts)} (against {before.release})."


def _bad(shown: Mapping[str, KeptShown], number: str) -> bool:
    return number in shown and shown[number].verdict not in RIGHT


def _section(defect: Defect, installed: KeptRelease) -> Iterator[str]:
    shown = installed.shown[defect.number]
    yield f"## {defect.number}: {defect.title}"
    yield ""
    yield from textwrap.wrap(defect.why, 120, break_long_words=False, break_on_hyphens=False)
    yield ""
    yield "```python"
    yield defect.lines.strip()
    yield "```"
    yield ""
    said = f": {shown.reason}" if shown.reason else ""
    yield f"torch {installed.release}, simulated: **{shown.verdict}**{said}"
    for report in defect.reports:
        yield f"- {report.link}: {report.says}."
    if shown.source.strip():
        yield ""
        yield "<details><summary>the generated Metal</summary>"
        yield ""
        yield "```metal"
        yield from _excerpt(shown.source)
        yield "```"
        yield ""
        yield "</details>"


def _excerpt(source: str) -> list[str]:
    lines = [line.rstrip() for line in textwrap.dedent(source).strip().splitlines() if line.strip()]
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 6], f"    // ... {len(lines) - MOST_LINES + 1} lines", *lines[-5:]]
