"""The page of what torch.compile's Metal gets wrong: the programs and what they showed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ..table import Document, Table
from .page import PageInputs

if TYPE_CHECKING:
    from ...audit.compiled.defects.defect import Defect, Report
    from ...audit.compiled.defects.measurement_file import StoredRelease, StoredResult

# How many lines of a kernel are shown at most.
MOST_LINES = 40
RIGHT = ("metal", "metal + aten", "aten", "no kernel")

_INTRODUCTION = """\
Under `torch.compile`, Inductor writes Metal for mps. mpsmith runs that Metal on Linux, on the **simulated** mps device,
and compares with the CPU. These are the defects of upstream's generated code that it found, each with a program that
needs nothing but torch. We confirmed none on a Mac; what others saw on Macs is listed.

```
mpsmith compiled defects                       # run them all with the installed torch's code generator
mpsmith compiled defects --codegen 2.15.0      # with another release's
mpsmith compiled defects --script U2           # the program, for a Mac
```

`mpsmith compiled defects --codegen {releases} --record` measured what is shown here.

How certain it is that a Mac shows it too:

| certainty | meaning |
|---|---|
| logic of the generated source | the source computes something else than the program, or none is generated |
| undefined behaviour | the source relies on what Metal leaves open: some chips may show it, others not |
| Apple's library | it depends on what Apple's compiler accepts, or its library returns: needs a Mac first |"""

_RELEASES = """\
The code generator of another release (`torch/_inductor/codegen/mps.py` and the headers of `c10/metal`, from its macOS \
wheel) in place of that of torch {installed}: an *overlay*; no installed torch has this combination. The rest of \
Inductor (decompositions, lowerings, the order of loops) is that of torch {installed} in every column, so a defect \
that a release fixed there still shows. A dash: right."""


def document(inputs: PageInputs) -> Document:
    """The known defects with their programs, as `mpsmith compiled defects --record` measured them."""
    from ...audit.compiled.defects.measurement_file import read
    from ...audit.compiled.defects.table import DEFECTS

    return defects_document(DEFECTS, read())


def defects_document(defects: Sequence[Defect], releases: Sequence[StoredRelease]) -> Document:
    """The page of the defects.

    Args:
        defects: the defects, the most certain first.
        releases: what was measured, the installed release among them.
    """
    installed = next(release for release in releases if not release.overlay)
    usable = [release for release in releases if not release.cannot]
    overlays = ",".join(release.release for release in releases if release.overlay)
    return Document(
        "What torch.compile's Metal for mps gets wrong",
        [_INTRODUCTION.format(releases=overlays)],
        [
            Table(
                "Defects",
                ("", "defect", "shows as", "certainty", "attributed to", "public"),
                tuple(_row(defect, installed.shown[defect.number]) for defect in defects),
                links={_number(report): report.link for defect in defects for report in defect.reports},
            ),
            Table(
                "Over the releases",
                ("", *(release.release if release.overlay else f"{release.release} (installed)" for release in usable)),
                tuple((d.number, *(_cell(release.shown.get(d.number)) for release in usable)) for d in defects),
                _RELEASES.format(installed=installed.release),
            ),
        ],
        [
            *_changes(usable),
            *(f"torch {release.release}: {release.cannot}" for release in releases if release.cannot),
            *("\n".join(_section(defect, installed)) for defect in defects),
        ],
    )


def _row(defect: Defect, shown: StoredResult) -> tuple[str, ...]:
    public = ", ".join(map(_number, defect.reports)) or "none found"
    return defect.number, defect.title, shown.verdict, defect.certainty.value, shown.faulty_stage or "–", public


def _number(report: Report) -> str:
    return f"#{report.link.rpartition('/')[2]}"


def _cell(shown: StoredResult | None) -> str:
    if shown is None:
        return ""
    return "–" if shown.verdict in RIGHT else shown.verdict


def _changes(releases: Sequence[StoredRelease]) -> Iterator[str]:
    """What each release fixed and broke, compared with the one before it."""
    for before, after in pairwise(releases):
        fixed = [n for n in after.shown if _is_wrong(before.shown, n) and not _is_wrong(after.shown, n)]
        broken = [n for n in after.shown if not _is_wrong(before.shown, n) and _is_wrong(after.shown, n)]
        if fixed or broken:
            parts = [f"{word} {', '.join(which)}" for word, which in (("fixed", fixed), ("broke", broken)) if which]
            yield f"- {after.release} {' and '.join(parts)} (compared with {before.release})."


def _is_wrong(shown: Mapping[str, StoredResult], number: str) -> bool:
    return number in shown and shown[number].verdict not in RIGHT


def _section(defect: Defect, installed: StoredRelease) -> Iterator[str]:
    shown = installed.shown[defect.number]
    yield f"## {defect.number}: {defect.title}"
    yield ""
    yield from textwrap.wrap(defect.why, 120, break_long_words=False, break_on_hyphens=False)
    yield ""
    yield "```python"
    yield defect.lines.strip()
    yield "```"
    yield ""
    reason = f": {shown.reason}" if shown.reason else ""
    yield f"torch {installed.release}, simulated: **{shown.verdict}**{reason}"
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
